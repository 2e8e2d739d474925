#include "lab/flow_model.h"

#include <algorithm>
#include <limits>

namespace riffle::lab {

// Progressive filling: the port with the least equal share fixes its flows, then the next.
std::vector<double> fair_rates(const Wiring& wiring, const std::vector<Flow>& flows) {
  std::vector<double> left;
  for (const Port& port : wiring.ports) left.push_back(port.bandwidth);
  std::vector<int> users(left.size());
  for (const Flow& flow : flows)
    for (const int port : wiring.path(flow.from, flow.to)) ++users[static_cast<std::size_t>(port)];
  std::vector<double> rates(flows.size(), -1);
  for (;;) {
    int tightest = -1;
    double share = std::numeric_limits<double>::infinity();
    for (std::size_t port = 0; port < left.size(); ++port)
      if (users[port] > 0 && left[port] / users[port] < share) {
        share = left[port] / users[port];
        tightest = static_cast<int>(port);
      }
    if (tightest < 0) return rates;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const auto& path = wiring.path(flows[i].from, flows[i].to);
      if (rates[i] >= 0 || std::ranges::find(path, tightest) == path.end()) continue;
      rates[i] = share;
      for (const int port : path) {
        left[static_cast<std::size_t>(port)] -= share;
        --users[static_cast<std::size_t>(port)];
      }
    }
  }
}

Seconds time_of(const Wiring& wiring, std::vector<Flow> flows) {
  double now = 0;
  double end = 0;
  while (!flows.empty()) {
    const std::vector<double> rates = fair_rates(wiring, flows);
    double step = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < flows.size(); ++i) step = std::min(step, flows[i].bytes / rates[i]);
    now += step;
    std::vector<Flow> going;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      flows[i].bytes -= rates[i] * step;
      if (flows[i].bytes > 1e-6 * rates[i]) {  // more than a microsecond's
        going.push_back(flows[i]);
        continue;
      }
      Nanoseconds latency = 0;
      for (const int port : wiring.path(flows[i].from, flows[i].to))
        latency += wiring.ports[static_cast<std::size_t>(port)].latency;
      end = std::max(end, now + static_cast<double>(latency) * 1e-9);
    }
    flows = std::move(going);
  }
  return Seconds(end);
}

}  // namespace riffle::lab
