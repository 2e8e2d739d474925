// A slow and simple simulator of flows, as a judge for the fast one: all rates are computed afresh
// by filling links step by step whenever a flow starts or ends.
#pragma once

#include <functional>
#include <vector>

#include "pattern/pattern.h"
#include "riffle/cluster.h"

namespace riffle::reference {

struct Flow {
  Rank from = 0;
  Rank to = 0;
  double bytes = 0;
};

class FluidNetwork {
 public:
  explicit FluidNetwork(const Cluster& cluster) : cluster_(cluster) {}

  // Starts a flow now; `left` is called when its last byte has left, `arrived` one latency later.
  void start(const Flow& flow, std::function<void(double)> arrived,
             std::function<void(double)> left = {});
  // Calls back at a time.
  void at(double time, std::function<void(double)> callback);
  // Until nothing is left to happen. Returns the time of the last thing that did.
  double run();
  [[nodiscard]] double now() const { return now_; }

 private:
  struct Active {
    std::vector<int> links;
    double rest = 0;
    double rate = 0;
    double latency = 0;
    std::function<void(double)> arrived;
    std::function<void(double)> left;
  };
  struct Timer {
    double time = 0;
    std::function<void(double)> callback;
  };
  [[nodiscard]] std::vector<int> route(Rank from, Rank to) const;
  [[nodiscard]] double capacity(int link) const;
  void fill_rates();

  const Cluster& cluster_;
  double now_ = 0;
  std::vector<Active> active_;
  std::vector<Timer> timers_;
};

// When each member of a collective has its result, where member i joins at joins[i]. A pattern with
// phases runs in segments, as pattern/pieces.h cuts.
std::vector<double> collective_ends(const pattern::Pattern& pattern, const Group& group,
                                    double bytes, const Cluster& cluster,
                                    const std::vector<double>& joins);

}  // namespace riffle::reference
