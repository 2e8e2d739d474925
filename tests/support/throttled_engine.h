// An engine whose links can be made slow, and fast again, while it is used: every message is real
// and goes over the engine below; the sender is held up first, as by a link that is busy so long.
#pragma once

#include <atomic>
#include <vector>

#include "riffle/random.h"
#include "support/passing_engine.h"

namespace riffle::test {

// What each link takes from a sender; shared by all ranks, changed at any time.
class Throttle {
 public:
  explicit Throttle(int ranks) : ranks_(ranks), links_(static_cast<std::size_t>(ranks * ranks)) {}

  // Both ways.
  void set(Rank a, Rank b, Seconds per_message);
  void set_all(Seconds per_message);
  // Between the ranks below `first_of_second` and the others.
  void set_between(Rank first_of_second, Seconds per_message);
  // All links of a rank.
  void set_host(Rank rank, Seconds per_message);
  // Every message takes up to so many times as long, by chance.
  void set_jitter(double share) { jitter_ = share; }

  [[nodiscard]] Seconds of(Rank from, Rank to) const {
    return Seconds(links_[static_cast<std::size_t>(from * ranks_ + to)].load());
  }
  [[nodiscard]] double jitter() const { return jitter_; }

 private:
  int ranks_;
  std::vector<std::atomic<double>> links_;
  std::atomic<double> jitter_ = 0;
};

class ThrottledEngine : public PassingEngine {
 public:
  ThrottledEngine(Engine& below, const Throttle& throttle)
      : PassingEngine(below), throttle_(throttle) {}

  [[nodiscard]] std::string_view name() const override { return "throttled"; }
  [[nodiscard]] Request send(Rank to, Tag tag, std::span<const std::byte> data) override;

 private:
  const Throttle& throttle_;
  std::atomic<std::uint64_t> sent_ = 0;
};

}  // namespace riffle::test
