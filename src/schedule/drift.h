// Whether exchanges take another time than they used to. Pure: the same samples give the same
// answer on every rank.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "riffle/world.h"
#include "schedule/phases.h"
#include "schedule/usual.h"

namespace riffle::schedule {

// One exchange of one step, all its buckets together. A member that comes early waits for the
// others, so what the exchange itself took is the least over its members.
struct ExchangeTime {
  Group group;
  bool crosses = false;  // members are of several racks
  Seconds time{};
  int phase = Phases::kNone;  // of the schedule's period
};

class Drift {
 public:
  struct Seen {
    Group ranks;           // whose exchanges differ
    bool crosses = false;  // those between racks
    double factor = 1;     // above 1: slower than before
  };

  // The exchanges of one window. Each rank is judged by itself, for each kind of its exchanges
  // (inside or across, by size of group): the slower quarter for what becomes slow, the faster one
  // for what becomes fast, since some links of a rank may have been slower than others all along.
  // What crosses is judged as a whole, since a rank crosses rarely. A window without a kind says
  // nothing about it. Phases are judged together, made comparable (phases.h), so that what slows
  // all of them is seen soon; and each by itself, since what slows the partners of one phase only
  // comes and goes from window to window. What counts as a change: usual.h.
  std::optional<Seen> look(const std::vector<ExchangeTime>& window);
  // Groups have changed: what is usual must be learned anew.
  void forget();

 private:
  struct Kind {
    bool crosses = false;
    int size = 0;
    Rank rank = 0;  // kAll: what crosses
    int phase = 0;  // kNone: all together
    auto operator<=>(const Kind&) const = default;
  };
  struct Quarters {
    Phases phases;
    Usual slower{Usual::Way::up};
    Usual faster{Usual::Way::down};
  };
  static constexpr Rank kAll = -1;

  std::map<Kind, Quarters> usual_;
};

}  // namespace riffle::schedule
