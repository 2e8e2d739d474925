// Whether exchanges take another time than they used to. Pure: the same samples give the same
// answer on every rank.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "riffle/world.h"

namespace riffle::runtime {

// One exchange of one step, all its buckets together. A member that comes early waits for the
// others, so what the exchange itself took is the least over its members.
struct ExchangeTime {
  Group group;
  bool crosses = false;  // members are of several racks
  Seconds time{};
};

class Drift {
 public:
  // By how much times must differ, as a factor and at all.
  static constexpr double kFactor = 1.5;
  static constexpr Seconds kNoise = microseconds(100);
  // In so many windows in a row.
  static constexpr int kWindows = 2;

  struct Seen {
    Group ranks;           // whose exchanges differ
    bool crosses = false;  // those between racks
    double factor = 1;     // above 1: slower than before
  };

  // The exchanges of one window. The first window that has a kind of exchange (inside or across,
  // by size of group) says what is usual. Within a rack each rank is judged by itself: in a
  // quarter of its exchanges at least the difference must show. What crosses is judged as a whole,
  // since a rank crosses rarely. A window without a kind says nothing about it.
  std::optional<Seen> look(const std::vector<ExchangeTime>& window);
  // Groups have changed: what is usual must be learned anew.
  void forget();

 private:
  using Kind = std::pair<bool, int>;  // crosses, size
  struct Count {
    int slower = 0;
    int faster = 0;
    double factor = 1;
  };
  static constexpr Rank kAll = -1;

  std::map<Kind, Seconds> usual_;
  std::map<Rank, Count> counts_;  // kAll: what crosses
};

}  // namespace riffle::runtime
