#include "lab/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "riffle/error.h"

namespace riffle::lab {

namespace {

// Estimates from one machine of two cores, not yet a measured boundary: a packet's way through
// kernel and switch takes some 25 us that are taken off, and varies by as much; a latency must be
// well above. More hosts than this share of a core wait for each other's turn.
constexpr Seconds least_latency = microseconds(500);
constexpr double hosts_per_core = 4;
// What hosts may send together, payload, for each core.
constexpr double bytes_per_core = 250e6;

struct Need {
  double dilation = 1;
  std::string why;
};

Need latency_need(const Cluster& cluster, const Machine& machine) {
  const double crowd = std::max(1.0, cluster.size() / (hosts_per_core * machine.cores));
  const Seconds least = least_latency * crowd;
  Seconds shortest{};
  for (Rank a = 0; a < cluster.size(); ++a)
    for (Rank b = 0; b < cluster.size(); ++b)
      if (const Seconds latency = cluster.latency(a, b);
          a != b && (shortest.count() == 0 || latency < shortest))
        shortest = latency;
  if (cluster.size() < 2) return {};
  return {least / std::max(shortest, Seconds(1e-9)),
          fmt::format("a latency of {}; with {} hosts on {} cores the least is {}", print(shortest),
                      cluster.size(), machine.cores, print(least))};
}

Need bandwidth_need(const Cluster& cluster, double shrink, const Machine& machine) {
  double sum = 0;
  for (const WorkerSpec& worker : cluster.workers) sum += worker.link.bandwidth.bytes_per_second;
  const double most = bytes_per_core * machine.cores;
  return {sum / shrink / most,
          fmt::format("hosts that send {} together; {} cores carry {}",
                      print(Bandwidth{sum / shrink}), machine.cores, print(Bandwidth{most}))};
}

Need greater(Need a, Need b) {
  return a.dilation >= b.dilation ? std::move(a) : std::move(b);
}

// A number that a person would type.
double rounded_up(double dilation) {
  if (dilation <= 1) return 1;
  const double unit = std::pow(10, std::floor(std::log10(dilation)) - 1);
  return std::max(2.0, std::ceil(std::ceil(dilation / unit - 1e-9) * unit));
}

Need need_of(const Cluster& cluster, double shrink, const Machine& machine) {
  if (cluster.fit)
    usage_error("a lab needs links, and a fit has none: use flat:, racks: or sites:");
  return greater(latency_need(cluster, machine), bandwidth_need(cluster, shrink, machine));
}

}  // namespace

double least_dilation(const Cluster& cluster, double shrink, const Machine& machine) {
  return rounded_up(need_of(cluster, shrink, machine).dilation);
}

void refuse_what_cannot_be(const Cluster& cluster, double dilate, double shrink,
                           const Machine& machine) {
  const Need need = need_of(cluster, shrink, machine);
  if (need.dilation <= dilate * (1 + 1e-9)) return;
  usage_error("the cluster asks for {}; --dilate {:g} would work{}", need.why,
              rounded_up(need.dilation),
              dilate > 1 ? fmt::format(" ({:g} was given)", dilate) : "");
}

}  // namespace riffle::lab
