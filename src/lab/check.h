// A lab measured from inside, with sockets of our own, against what its cluster says.
#pragma once

#include <string>
#include <vector>

#include "lab/lab.h"

namespace riffle::lab {

struct Measured {
  std::string what;     // "ping", "throughput", "shared", "all-to-all"
  std::string between;  // "worker0, worker1"
  bool is_rate = false;
  double expected = 0;  // seconds (a round trip, or all of it), or payload bytes per second
  double measured = 0;
  [[nodiscard]] double difference() const { return measured / expected - 1; }
};
std::string spell(const Measured& kind, double value);

struct CheckOptions {
  // That a rate is measured for.
  Seconds time{1.0};
  // That an all-to-all would take by the flow model.
  Seconds all_to_all_time{3.0};
  // Pairs are all of them, or so many, spread over the cluster.
  int most_pairs = 16;
};

// In this order: ping and throughput pair by pair; every shared uplink with all flows that fit
// (each is one result: what a flow gets of it); all-to-all, against the flow model. The flows of an
// uplink keep no more on their way than it has room for: those that fill its queue until it drops
// share evenly only on average over a minute, which says more of TCP than of the lab.
std::vector<Measured> check(const Lab& lab, const CheckOptions& options);

}  // namespace riffle::lab
