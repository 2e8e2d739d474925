// Flows between hosts, round by round: every pair while all hosts are busy, and every uplink while
// all hosts below it are.
#pragma once

#include <functional>
#include <string>

#include "measure/cluster_fit.h"
#include "measure/echoes.h"
#include "measure/flows.h"

namespace riffle::measure {

class Rounds {
 public:
  // Called before flows go one way, with what they are for.
  using Tell = std::function<void(const std::string&)>;
  // Flows take no longer than `most_time`, and as long as they need to settle; no round begins when
  // `budget` has passed. What is given must outlive this object. All ranks make the same calls.
  Rounds(const Place& place, const Group& hosts, const PairTable<Echo>& echoes, Seconds most_time,
         Seconds budget, Tell tell);

  // Every host sends to another, or receives from one, in each round, then the other way round;
  // `count` rounds of a tournament, and at least a few. One way at a time: data on its way back
  // would delay what TCP acknowledges. A pair that was measured before keeps the better rate.
  void run(int count);
  // Hosts of a part send to as many beyond it, within the part around it, and receive from them.
  // Where it is `known` what the uplink carries, pieces are cut for that.
  UplinkLoad load_uplink(const Levels& levels, int part, Bandwidth known = kUnknown);

  [[nodiscard]] const PairTable<Bandwidth>& rates() const { return rates_; }
  [[nodiscard]] Seconds time() const { return time_; }
  // The budget has passed. The same on all ranks.
  [[nodiscard]] bool is_over() const { return over_; }

 private:
  using Pairs = std::vector<std::pair<int, int>>;
  static constexpr Bandwidth kUnknown{1e18};
  // One way; takes longer, from now on, where the flows have not settled. None is expected to carry
  // more than `most`.
  std::vector<Carried> carry_settled(const Pairs& pairs, Bandwidth most = kUnknown);
  [[nodiscard]] std::vector<Flow> flows_of(const Pairs& pairs, Bandwidth most) const;
  void note(std::pair<int, int> pair, Bandwidth rate);
  void look_at_clock();

  const Place& place_;
  const Group& hosts_;
  const PairTable<Echo>& echoes_;
  Seconds most_time_;
  Seconds time_;
  Seconds budget_;
  Tell tell_;
  Deadline began_ = Clock::now();
  bool over_ = false;
  PairTable<Bandwidth> rates_;
};

}  // namespace riffle::measure
