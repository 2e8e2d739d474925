#include "lab/check.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <stdexcept>

#include "lab/flow_model.h"
#include "lab/ping.h"
#include "lab/transfers.h"

namespace riffle::lab {

namespace {

constexpr int pings = 20;

std::string pair_name(int a, int b) {
  return fmt::format("worker{}, worker{}", a, b);
}

// All pairs where they are few, else as many, of all distances.
std::vector<std::pair<int, int>> pairs_of(int hosts, int most) {
  std::vector<std::pair<int, int>> all;
  for (int a = 0; a < hosts; ++a)
    for (int b = a + 1; b < hosts; ++b) all.emplace_back(a, b);
  if (static_cast<int>(all.size()) <= most) return all;
  std::vector<std::pair<int, int>> some;
  for (int i = 0; i < most; ++i)
    some.push_back(
        all[static_cast<std::size_t>(i) * (all.size() - 1) / static_cast<std::size_t>(most - 1)]);
  return some;
}

double one_way(const Wiring& wiring, int from, int to) {
  Nanoseconds sum = 0;
  for (const int port : wiring.path(from, to))
    sum += wiring.ports[static_cast<std::size_t>(port)].latency;
  return static_cast<double>(sum) * 1e-9;
}

Measured check_ping(const Lab& lab, int from, int to) {
  const double expected = one_way(lab.wiring(), from, to) + one_way(lab.wiring(), to, from);
  lab.hosts().enter_network(from);
  const auto times = ping(to, pings, 0, Seconds(1 + 4 * expected));
  lab.hosts().leave_network();
  if (times.empty())
    throw std::runtime_error(fmt::format("lab: no ping from {} came back", pair_name(from, to)));
  return {"ping", pair_name(from, to), false, expected, median(times).count()};
}

// Enough bytes before it that TCP's window has opened.
double warm_up(const Lab& lab) {
  return 4.0 * static_cast<double>(lab.wiring().window);
}

void check_flows(const Lab& lab, Seconds time, const std::string& what, std::vector<Flow> flows,
                 const std::string& between, int most_in_flight, std::vector<Measured>& results) {
  const std::vector<double> rates = fair_rates(lab.wiring(), flows);
  for (std::size_t i = 0; i < flows.size(); ++i) flows[i].bytes = rates[i] * time.count() * 1.5;
  const Transferred done = transfer(lab.hosts(), flows,
                                    {.warm_up = std::min(warm_up(lab), flows.front().bytes),
                                     .window = time,
                                     .most_in_flight = most_in_flight});
  for (std::size_t i = 0; i < flows.size(); ++i)
    results.push_back({what, between.empty() ? pair_name(flows[i].from, flows[i].to) : between,
                       true, rates[i], done.rates[i]});
}

// A flow from each host below an uplink, to as many beyond it.
std::vector<Flow> flows_through(const Lab& lab, int port) {
  std::vector<Flow> flows;
  std::vector<bool> taken(static_cast<std::size_t>(lab.wiring().hosts));
  for (int from = 0; from < lab.wiring().hosts; ++from)
    for (int to = 0; to < lab.wiring().hosts; ++to) {
      const auto& path = lab.wiring().path(from, to);
      if (taken[static_cast<std::size_t>(to)] || std::ranges::find(path, port) == path.end())
        continue;
      taken[static_cast<std::size_t>(to)] = true;
      flows.push_back({from, to, 0});
      break;
    }
  return flows;
}

// What each of the flows may have on its way so that together they fill the way and half of the
// port's queue.
int room_each(const Wiring& wiring, int port, const std::vector<Flow>& flows) {
  const Port& shared = wiring.ports[static_cast<std::size_t>(port)];
  const double round_trip =
      one_way(wiring, flows[0].from, flows[0].to) + one_way(wiring, flows[0].to, flows[0].from);
  const double room = round_trip * shared.bandwidth + static_cast<double>(shared.limit) / 2;
  return static_cast<int>(room / static_cast<double>(flows.size()));
}

void check_shared(const Lab& lab, const CheckOptions& options, std::vector<Measured>& results) {
  const Cluster& cluster = lab.cluster();
  for (int domain = 1; domain < static_cast<int>(cluster.domains.size()); ++domain) {
    const LinkId link{.uplink = true, .index = domain};
    const int port = way_up(lab.wiring(), link);
    const std::vector<Flow> flows = flows_through(lab, port);
    if (flows.size() > 1)
      check_flows(lab, 3 * options.time, "shared", flows, name_of(cluster, link),
                  room_each(lab.wiring(), port, flows), results);
  }
}

void check_all_to_all(const Lab& lab, const CheckOptions& options, std::vector<Measured>& results) {
  std::vector<Flow> flows;
  for (int from = 0; from < lab.wiring().hosts; ++from)
    for (int to = 0; to < lab.wiring().hosts; ++to)
      if (from != to) flows.push_back({from, to, 1});
  const double slowest = std::ranges::min(fair_rates(lab.wiring(), flows));
  for (Flow& flow : flows) flow.bytes = std::max(1000.0, slowest * options.all_to_all_time.count());
  const TransferOptions how{.warm_up = std::min(warm_up(lab), flows.front().bytes),
                            .window = options.all_to_all_time};
  results.push_back({"all-to-all", fmt::format("{} hosts", lab.wiring().hosts), false,
                     time_of(lab.wiring(), flows).count(),
                     transfer(lab.hosts(), flows, how).time.count()});
}

}  // namespace

std::string spell(const Measured& kind, double value) {
  return kind.is_rate ? print(Bandwidth{value}) : print(Seconds(value));
}

std::vector<Measured> check(const Lab& lab, const CheckOptions& options) {
  std::vector<Measured> results;
  const auto pairs = pairs_of(lab.wiring().hosts, options.most_pairs);
  for (const auto& [a, b] : pairs) results.push_back(check_ping(lab, a, b));
  for (const auto& [a, b] : pairs)
    check_flows(lab, options.time, "throughput", {{a, b, 0}}, "", 0, results);
  check_shared(lab, options, results);
  if (lab.wiring().hosts > 2) check_all_to_all(lab, options, results);
  return results;
}

}  // namespace riffle::lab
