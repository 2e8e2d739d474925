#include "measure/flows.h"

#include <algorithm>
#include <deque>

namespace riffle::measure {
namespace {

constexpr std::uint64_t kChannel = 0x666c6f77;  // "flow"
constexpr Tag kPieces{.channel = kChannel, .sequence = 1};
constexpr Tag kReceipts{.channel = kChannel, .sequence = 2};
// What the first byte of a piece says.
constexpr std::byte kMore{0};
constexpr std::byte kLast{1};

constexpr int kFirstWindow = 4;  // pieces
constexpr Bytes kLargestWindow = mebibytes(64);
constexpr double kGrew = 1.05;
constexpr Seconds kMemory{0.01};  // beside a round trip: what counts as lately

// One end of a flow.
class End {
 public:
  virtual ~End() = default;
  // Moves what can be moved; true where something was.
  virtual bool move() = 0;
  [[nodiscard]] virtual bool is_done() const = 0;
  // What it waits for, and until when at most.
  virtual void add_requests(std::vector<Request>& requests) const = 0;
  [[nodiscard]] virtual Deadline until() const { return Deadline::max(); }
  virtual void cancel() noexcept = 0;
};

class Sender final : public End {
 public:
  Sender(Engine& engine, const Flow& flow, Deadline end)
      : engine_(engine),
        flow_(flow),
        end_(end),
        piece_(static_cast<std::size_t>(flow.piece.count), kMore),
        last_(static_cast<std::size_t>(flow.piece.count), kLast),
        most_(std::max<std::int64_t>(kLargestWindow.count / flow.piece.count, kFirstWindow)) {
    listen();
  }

  bool move() override {
    bool moved = false;
    while (!ended_ && (Clock::now() >= end_ || sent_ - received_ < window())) {
      ended_ = Clock::now() >= end_;
      requests_.push_back(engine_.send(flow_.to, kPieces, ended_ ? last_ : piece_));
      ++sent_;
      moved = true;
    }
    while (!requests_.empty() && engine_.test(requests_.front())) {
      requests_.pop_front();
      moved = true;
    }
    while (!receipt_request_.empty() && engine_.test(receipt_request_)) {
      ++received_;
      receipts_.push_back(Clock::now());
      if (!ended_ || received_ < sent_) listen();
      moved = true;
    }
    return moved;
  }
  [[nodiscard]] bool is_done() const override {
    return ended_ && requests_.empty() && received_ == sent_;
  }
  void add_requests(std::vector<Request>& requests) const override {
    if (!requests_.empty()) requests.push_back(requests_.front());
    if (!receipt_request_.empty()) requests.push_back(receipt_request_);
  }
  [[nodiscard]] Deadline until() const override { return ended_ ? Deadline::max() : end_; }
  void cancel() noexcept override {
    for (Request& request : requests_) engine_.cancel(request);
    engine_.cancel(receipt_request_);
  }

 private:
  void listen() { receipt_request_ = engine_.receive(flow_.to, kReceipts, {&receipt_, 1}); }
  std::int64_t window() {
    const Deadline since =
        Clock::now() - std::chrono::duration_cast<Clock::duration>(flow_.round_trip + kMemory);
    while (!receipts_.empty() && receipts_.front() < since) receipts_.pop_front();
    return std::clamp<std::int64_t>(2 * static_cast<std::int64_t>(receipts_.size()), kFirstWindow,
                                    most_);
  }

  Engine& engine_;
  Flow flow_;
  Deadline end_;
  std::vector<std::byte> piece_;
  std::vector<std::byte> last_;
  std::int64_t most_;  // pieces
  std::int64_t sent_ = 0;
  std::int64_t received_ = 0;  // as the receipts say
  bool ended_ = false;
  std::deque<Request> requests_;
  std::deque<Deadline> receipts_;  // of late
  std::byte receipt_{};
  Request receipt_request_;
};

class Receiver final : public End {
 public:
  Receiver(Engine& engine, const Flow& flow)
      : engine_(engine), flow_(flow), piece_(static_cast<std::size_t>(flow.piece.count)) {
    listen();
  }

  bool move() override {
    bool moved = false;
    while (!request_.empty() && engine_.test(request_)) {
      arrivals_.push_back(Clock::now());
      ended_ = piece_.front() == kLast;
      receipts_.push_back(engine_.send(flow_.from, kReceipts, {&receipt_, 1}));
      if (!ended_) listen();
      moved = true;
    }
    while (!receipts_.empty() && engine_.test(receipts_.front())) {
      receipts_.pop_front();
      moved = true;
    }
    return moved;
  }
  [[nodiscard]] bool is_done() const override { return ended_ && receipts_.empty(); }
  void add_requests(std::vector<Request>& requests) const override {
    if (!request_.empty()) requests.push_back(request_);
    if (!receipts_.empty()) requests.push_back(receipts_.front());
  }
  void cancel() noexcept override {
    engine_.cancel(request_);
    for (Request& request : receipts_) engine_.cancel(request);
  }

  [[nodiscard]] Carried carried(Deadline start, Seconds time) const {
    const auto at = [&](int thirds) {
      return start + std::chrono::duration_cast<Clock::duration>(time * thirds / 3);
    };
    const Bandwidth before = rate(at(1), at(2));
    const Bandwidth now = rate(at(2), at(3));
    const bool grew = now.bytes_per_second > kGrew * before.bytes_per_second;
    const auto pieces = std::ranges::count_if(
        arrivals_, [&](Deadline each) { return each >= at(1) && each <= at(3); });
    return {grew ? now : rate(at(1), at(3)), before, static_cast<int>(pieces)};
  }

 private:
  void listen() { request_ = engine_.receive(flow_.from, kPieces, piece_); }

  // A piece comes evenly over the time since the one before it, so that what flows carry adds up,
  // however they take turns.
  [[nodiscard]] Bandwidth rate(Deadline from, Deadline to) const {
    double pieces = 0;
    for (std::size_t i = 1; i < arrivals_.size(); ++i) {
      const Seconds whole = arrivals_[i] - arrivals_[i - 1];
      const Seconds part = std::min(arrivals_[i], to) - std::max(arrivals_[i - 1], from);
      if (part > Seconds{}) pieces += part / whole;
    }
    return {pieces * static_cast<double>(flow_.piece.count) / Seconds(to - from).count()};
  }

  Engine& engine_;
  Flow flow_;
  std::vector<std::byte> piece_;
  std::vector<Deadline> arrivals_;
  bool ended_ = false;
  std::byte receipt_{};
  Request request_;
  std::deque<Request> receipts_;
};

void run(const Place& place, End& end, Rank peer) {
  std::vector<Request> requests;
  Deadline give_up = place.give_up();
  try {
    while (!end.is_done()) {
      if (end.move()) {
        give_up = place.give_up();
        continue;
      }
      requests.clear();
      end.add_requests(requests);
      place.await(requests, {&peer, 1}, end.until(), give_up);
    }
  } catch (...) {
    end.cancel();
    throw;
  }
}

}  // namespace

std::vector<Carried> carry(const Place& place, const std::vector<Flow>& flows, Seconds time) {
  Engine& engine = place.engine();
  std::vector<double> told(3 * flows.size());
  place.meet();
  const Deadline start = Clock::now();
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (flows[i].from == engine.rank()) {
      Sender sender(engine, flows[i], start + std::chrono::duration_cast<Clock::duration>(time));
      run(place, sender, flows[i].to);
    } else if (flows[i].to == engine.rank()) {
      Receiver receiver(engine, flows[i]);
      run(place, receiver, flows[i].from);
      const Carried seen = receiver.carried(start, time);
      told[3 * i] = seen.rate.bytes_per_second;
      told[3 * i + 1] = seen.before.bytes_per_second;
      told[3 * i + 2] = seen.pieces;
    }
  }
  place.control().all_reduce(told, Reduction::sum);
  std::vector<Carried> carried;
  for (std::size_t i = 0; i < told.size(); i += 3)
    carried.push_back({{told[i]}, {told[i + 1]}, static_cast<int>(told[i + 2])});
  return carried;
}

}  // namespace riffle::measure
