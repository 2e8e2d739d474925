#include "measure/pairs.h"

#include <algorithm>
#include <array>

namespace riffle::measure {
namespace {

constexpr std::uint64_t kChannel = 0x73656e73;  // "sens"
constexpr std::chrono::milliseconds kLookAround{20};

// What the measuring side asks for: an echo of the word itself, of as many bytes as the word says,
// or no more.
using Word = std::uint64_t;
constexpr Word kEnd = 0;
constexpr Word kEcho = 1;

// What disturbs a host disturbs all its messages for a while, so pairs meet several times.
constexpr int kPasses = 2;
constexpr int kEchoes = 12;
constexpr int kFewEchoes = 2;  // where they take long
constexpr Seconds kLong{0.02};
constexpr std::array<Word, 3> kSizes{16 << 10, 256 << 10, 1 << 20};
// A transfer that takes so much longer than an echo, and no less than the echo, says enough.
constexpr Seconds kEnough{0.002};
// No link is faster; what says so was disturbed.
constexpr Bandwidth kBest{100e9};

// The best round trips of a pair: what disturbs a trip only makes it longer.
struct Best {
  Seconds echo{1e9};
  std::array<Seconds, kSizes.size()> transfers{};  // zero: not tried

  [[nodiscard]] Seconds beyond_echo(std::size_t size) const {
    return std::max(transfers[size] - echo, Bytes{static_cast<std::int64_t>(kSizes[size])} / kBest);
  }
  // The largest that was tried, 0 at first.
  [[nodiscard]] std::size_t largest() const {
    std::size_t size = 0;
    while (size + 1 < kSizes.size() && transfers[size + 1] > Seconds{}) ++size;
    return size;
  }
  [[nodiscard]] Link link() const {
    const std::size_t size = largest();
    return {.latency = echo / 2,
            .bandwidth = {static_cast<double>(kSizes[size]) / (beyond_echo(size).count() / 2)}};
  }
};

class Bouncer {
 public:
  Bouncer(Engine& engine, const collective::Control& control,
          const std::function<void()>& look_around)
      : engine_(engine),
        everybody_(control.ranks),
        deadline_(after(control.timeout)),
        look_around_(look_around),
        data_(kSizes.back()) {}

  void measure(Rank peer, Best& best) {
    bounce(peer, kEcho);  // it may be busy with another
    const auto begin = Clock::now();
    for (int i = 0; i < kEchoes; ++i) {
      if (i >= kFewEchoes && Clock::now() - begin > kLong) break;
      best.echo = std::min(best.echo, bounce(peer, kEcho));
    }
    for (std::size_t size = best.largest(); size < kSizes.size(); ++size) {
      const Seconds time = bounce(peer, kSizes[size]);
      Seconds& least = best.transfers[size];
      least = least > Seconds{} ? std::min(least, time) : time;
      if (best.beyond_echo(size) > std::max(best.echo, kEnough)) break;
    }
    send(peer, kEnd);
  }

  void answer(Rank peer) {
    while (true) {
      Word word = 0;
      receive(peer, std::as_writable_bytes(std::span(&word, 1)));
      if (word == kEnd) return;
      if (word == kEcho) {
        send(peer, word);
        continue;
      }
      const std::span<std::byte> bytes = std::span(data_).first(word);
      receive(peer, bytes);
      send(peer, bytes);
    }
  }

 private:
  Seconds bounce(Rank peer, Word word) {
    const auto start = Clock::now();
    send(peer, word);
    if (word == kEcho) {
      receive(peer, std::as_writable_bytes(std::span(&word, 1)));
    } else {
      const std::span<std::byte> bytes = std::span(data_).first(word);
      send(peer, bytes);
      receive(peer, bytes);
    }
    return Clock::now() - start;
  }
  void send(Rank to, Word word) { send(to, std::as_bytes(std::span(&word, 1))); }
  void send(Rank to, std::span<const std::byte> bytes) {
    finish(engine_.send(to, {.channel = kChannel}, bytes), to);
  }
  void receive(Rank from, std::span<std::byte> bytes) {
    finish(engine_.receive(from, {.channel = kChannel}, bytes), from);
  }
  void finish(Request request, Rank peer) {
    try {
      while (!engine_.test(request)) await(request, peer);
    } catch (...) {
      engine_.cancel(request);
      throw;
    }
  }
  void await(const Request& request, Rank peer) {
    const CommContext context{.group = &everybody_, .operation = "sense"};
    try {
      engine_.await_any({&request, 1}, {.deadline = std::min(deadline_, after(kLookAround)),
                                        .context = context,
                                        .watch = {&peer, 1}});
    } catch (const CommError& error) {
      if (error.failure() != CommFailure::timed_out || Clock::now() >= deadline_) throw;
      // The peer may wait for one that is gone.
      for (const Rank rank : everybody_)
        if (rank != engine_.rank()) throw_if_failed(engine_, rank, context);
      if (look_around_) look_around_();
    }
  }

  Engine& engine_;
  Group everybody_;
  Deadline deadline_;
  const std::function<void()>& look_around_;
  std::vector<std::byte> data_;
};

}  // namespace

// Those who meet in round r have places that add up to r, modulo the odd number of all but the
// last; the last meets whom that would pair with itself.
int opponent(int player, int round, int n) {
  const int last = n + n % 2 - 1;
  int other = 0;
  if (player == last) {
    other = round * ((last + 1) / 2) % last;
  } else {
    other = ((round - player) % last + last) % last;
    if (other == player) other = last;
  }
  return other < n ? other : -1;
}

PairLinks best_of(PairLinks a, const PairLinks& b) {
  for (std::size_t i = 0; i < a.links.size(); ++i) {
    a.links[i].latency = std::min(a.links[i].latency, b.links[i].latency);
    a.links[i].bandwidth = std::max(a.links[i].bandwidth, b.links[i].bandwidth);
  }
  return a;
}

PairLinks probe_pairs(Engine& engine, const collective::Control& control, const Group& among,
                      const std::function<void()>& look_around) {
  const int n = among.size();
  const int self = among.index_of(engine.rank());
  // Latency and seconds per byte of each pair, from who has measured it.
  std::vector<double> values(static_cast<std::size_t>(n) * static_cast<std::size_t>(n) * 2);
  if (self >= 0) {
    Bouncer bouncer(engine, control, look_around);
    std::vector<Best> best(static_cast<std::size_t>(n));
    const int rounds = n + n % 2 - 1;
    for (int round = 0; round < kPasses * rounds; ++round) {
      const int other = opponent(self, round % rounds, n);
      if (other > self) bouncer.measure(among.ranks()[other], best[other]);
      if (other >= 0 && other < self) bouncer.answer(among.ranks()[other]);
    }
    for (int other = self + 1; other < n; ++other) {
      const Link link = best[other].link();
      for (const int place : {self * n + other, other * n + self}) {
        values[static_cast<std::size_t>(place) * 2] = link.latency.count();
        values[static_cast<std::size_t>(place) * 2 + 1] = 1 / link.bandwidth.bytes_per_second;
      }
    }
  }
  control.all_reduce(values, Reduction::sum);
  PairLinks pairs{among, {}};
  for (std::size_t i = 0; i < values.size(); i += 2)
    pairs.links.push_back({Seconds(values[i]), {values[i + 1] > 0 ? 1 / values[i + 1] : 0}});
  return pairs;
}

}  // namespace riffle::measure
