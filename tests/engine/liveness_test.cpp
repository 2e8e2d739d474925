// Who is given up, and when, by a rank that hears others through packets.
#include "engine/liveness.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>

namespace riffle::engine {
namespace {

constexpr std::uint64_t session = 5;
constexpr int size = 3;

// Rank 0 with a heart and ears; ranks 1 and 2 are only their packets.
class Heard {
 public:
  Heard() {
    std::vector<std::string> addresses;
    for (const Beacon& each : beacons_) addresses.push_back(each.address());
    for (int r = 0; r < size; ++r) beacons_[at(r)].open(addresses, headers_of(r));
    liveness_ = std::make_unique<Liveness>(
        0, headers_of(0), std::vector<int>(size), beacons_.data(),
        EngineOptions{.failure_timeout = Seconds(1), .heartbeat_interval = milliseconds(20)},
        [this] { note(); });
    liveness_->all_joined();
  }
  ~Heard() { liveness_.reset(); }
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;

  // Those ranks' hearts beat for so long.
  void beat(const std::vector<Rank>& ranks, Seconds time) {
    for (const Deadline end = after(time); Clock::now() < end;) {
      for (const Rank rank : ranks) beacons_[at(rank)].beat();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  // Whom rank 0 had given up when it first gave up somebody.
  [[nodiscard]] std::vector<Rank> given_up_first() const {
    if (!found_.load()) return {};
    return first_;
  }
  // Those that have been told so.
  std::vector<Rank> told() {
    std::vector<Rank> ranks;
    for (const Rank rank : {1, 2}) {
      bool is_told = false;
      beacons_[at(rank)].listen([](Rank) {}, [&](Rank from) { is_told |= from == 0; });
      if (is_told) ranks.push_back(rank);
    }
    return ranks;
  }

 private:
  static std::size_t at(Rank rank) { return static_cast<std::size_t>(rank); }
  std::vector<SegmentHeader*> headers_of(Rank rank) {
    std::vector<SegmentHeader*> headers;
    for (int r = 0; r < size; ++r) headers.push_back(&headers_[at(rank) * size + at(r)]);
    return headers;
  }
  void note() {
    if (found_.load()) return;
    for (const Rank rank : {1, 2})
      if (liveness_->failure(rank)) first_.push_back(rank);
    found_.store(true);
  }

  std::array<Beacon, size> beacons_{
      {{0, "127.0.0.1", session}, {1, "127.0.0.1", session}, {2, "127.0.0.1", session}}};
  std::unique_ptr<SegmentHeader[]> headers_ = std::make_unique<SegmentHeader[]>(size * size);
  std::unique_ptr<Liveness> liveness_;
  std::vector<Rank> first_;
  std::atomic<bool> found_ = false;
};

TEST(Liveness, WhoIsSilentAloneIsGivenUpAlone) {
  Heard heard;
  heard.beat({1, 2}, milliseconds(200));
  heard.beat({2}, milliseconds(1400));
  EXPECT_EQ(heard.given_up_first(), std::vector<Rank>({1}));
  EXPECT_EQ(heard.told(), std::vector<Rank>({1}));
}

// The one that beat last must learn it as soon as the one that beat first: told of the other's
// failure only, it would believe that.
TEST(Liveness, WhoHearsNobodyGivesUpAllAtOnce) {
  Heard heard;
  heard.beat({1, 2}, milliseconds(200));
  heard.beat({2}, milliseconds(150));
  heard.beat({}, milliseconds(1100));
  EXPECT_EQ(heard.given_up_first(), std::vector<Rank>({1, 2}));
  EXPECT_EQ(heard.told(), std::vector<Rank>({1, 2}));
}

// Two who fell silent long one after the other are two failures.
TEST(Liveness, SilenceThatHasJustBegunIsNoCut) {
  Heard heard;
  heard.beat({1, 2}, milliseconds(200));
  heard.beat({2}, milliseconds(700));
  heard.beat({}, milliseconds(500));
  EXPECT_EQ(heard.given_up_first(), std::vector<Rank>({1}));
}

}  // namespace
}  // namespace riffle::engine
