#include "lab/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "riffle/error.h"

namespace riffle::lab {

namespace {

// Measured on a machine of two cores by `bench/lab_accuracy.py --only limits`; docs/performance.md
// has the figures.
//
// The network itself holds shorter latencies (ping), but hosts share the cores: between a message
// and the next those of a small all-reduce wait for each other's turns. Above this latency that
// adds less than 15 % to what the cost model says.
constexpr Seconds least_latency = microseconds(400);
constexpr Seconds latency_per_host = microseconds(100);  // on each core
// What hosts may send together, payload, for each core: half of what the switch moved while nobody
// computed.
constexpr double bytes_per_core = 500e6;
// What models may take of a machine's memory, all workers together. A worker has its weights,
// gradients, what travels and a snapshot of it.
constexpr double most_memory = 1e9;
constexpr double copies_of_a_model = 4;

struct Need {
  double dilation = 1;
  std::string why;
};

Seconds shortest_latency(const Cluster& cluster) {
  Seconds shortest{std::numeric_limits<double>::infinity()};
  for (Rank a = 0; a < cluster.size(); ++a)
    for (Rank b = 0; b < cluster.size(); ++b)
      if (a != b) shortest = std::min(shortest, cluster.latency(a, b));
  return shortest;
}

Need latency_need(const Cluster& cluster, const Machine& machine) {
  if (cluster.size() < 2) return {};
  const Seconds least = least_latency + latency_per_host * cluster.size() / machine.cores;
  const Seconds shortest = shortest_latency(cluster);
  return {least / std::max(shortest, Seconds(1e-12)),
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

void refuse(const Need& need, double dilate, const std::string& who) {
  if (need.dilation <= dilate * (1 + 1e-9)) return;
  if (need.dilation > most_dilation)
    usage_error("{} for {}, and no --dilate is enough; --force runs it all the same", who,
                need.why);
  usage_error("{} for {}; --dilate {:g} would work{}", who, need.why, rounded_up(need.dilation),
              dilate > 1 ? fmt::format(" ({:g} was given)", dilate) : "");
}

std::vector<Change> in_order(std::vector<Change> events) {
  std::ranges::stable_sort(events, {}, &Change::at);
  return events;
}

// What it makes of latencies and rates.
void apply(const Change& event, Cluster& cluster) {
  for (const LinkId id : links_of(event, cluster)) {
    const auto index = static_cast<std::size_t>(id.index);
    Link& link = id.uplink ? cluster.domains[index].uplink : cluster.workers[index].link;
    if (event.latency) link.latency = *event.latency;
    if (event.bandwidth) link.bandwidth = *event.bandwidth;
  }
}

}  // namespace

double least_dilation(const Cluster& cluster, double shrink, const Machine& machine) {
  return rounded_up(need_of(cluster, shrink, machine).dilation);
}

Scale least_scale(const Cluster& cluster, Bytes model, std::optional<double> dilate,
                  std::optional<double> shrink, const Machine& machine) {
  const double lone = dilate.value_or(rounded_up(latency_need(cluster, machine).dilation));
  if (!shrink) {
    const double held = static_cast<double>(model.count) * copies_of_a_model * cluster.size();
    shrink = rounded_up(
        std::max(held / most_memory, bandwidth_need(cluster, 1, machine).dilation / lone));
  }
  return {dilate.value_or(least_dilation(cluster, *shrink, machine)), *shrink};
}

void refuse_what_cannot_be(const Cluster& cluster, double dilate, double shrink,
                           const Machine& machine, const std::vector<Change>& events) {
  refuse(need_of(cluster, shrink, machine), dilate, "the cluster asks");
  Cluster changed = cluster;
  for (const Change& event : in_order(events)) {
    apply(event, changed);
    refuse(need_of(changed, shrink, machine), dilate, fmt::format("event {} asks", print(event)));
  }
}

}  // namespace riffle::lab
