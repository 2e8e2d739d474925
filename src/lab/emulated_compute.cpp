#include "lab/emulated_compute.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "base/text.h"
#include "riffle/random.h"

namespace riffle::lab {

namespace {

using Clock = std::chrono::steady_clock;

// A caller that comes back so soon has not waited for a network, only for a core that workers
// share: sleeping too long for the last layer is made up for by the next.
constexpr Nanoseconds at_once = 1'000'000;
// The kernel may join timers that are so close, and does that by letting all but the last wait.
constexpr unsigned long timer_slack = 1'000;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::optional<LabEnvironment> read_lab_environment() {
  const std::string cluster = variable("RIFFLE_LAB_CLUSTER");
  if (cluster.empty()) return std::nullopt;
  LabEnvironment result;
  result.cluster = cluster_from_json(cluster, "RIFFLE_LAB_CLUSTER");
  result.dilate = parse_number(variable("RIFFLE_LAB_DILATE"), "RIFFLE_LAB_DILATE");
  result.shrink = parse_number(variable("RIFFLE_LAB_SHRINK"), "RIFFLE_LAB_SHRINK");
  result.events = parse_changes(variable("RIFFLE_LAB_EVENTS"), "RIFFLE_LAB_EVENTS");
  result.start = parse_integer(variable("RIFFLE_LAB_START"), "RIFFLE_LAB_START");
  return result;
}

Trace shrunk(Trace trace, double shrink) {
  for (Layer& layer : trace.layers) {
    layer.elements =
        std::max<std::int64_t>(1, std::llround(static_cast<double>(layer.elements) / shrink));
    if (shrink != 1) layer.shape.clear();
  }
  return trace;
}

EmulatedCompute::EmulatedCompute(const Trace& trace, const LabEnvironment& environment, int host,
                                 std::uint64_t seed)
    : trace_(trace), environment_(environment), host_(host), seed_(seed) {
  std::ranges::stable_sort(environment_.events, {}, &Change::at);  // the last one counts
  prctl(PR_SET_TIMERSLACK, timer_slack);
}

double EmulatedCompute::slowness(Nanoseconds now) const {
  double slow = environment_.cluster.workers[static_cast<std::size_t>(host_)].slow;
  const double time = static_cast<double>(now - environment_.start) * 1e-9 / environment_.dilate;
  for (const Change& change : environment_.events)
    if (change.worker == host_ && change.slow && change.at.count() <= time) slow = *change.slow;
  return slow;
}

void EmulatedCompute::begin_step(std::int64_t step) {
  const Cluster& cluster = environment_.cluster;
  factor_ = slowness(clock_now());
  if (cluster.jitter <= 0 && cluster.straggle.probability <= 0) return;
  Random random(seed_ * 1'000'003 + static_cast<std::uint64_t>(host_),
                static_cast<std::uint64_t>(step));
  if (cluster.jitter > 0) factor_ *= std::max(0.05, 1 + cluster.jitter * random.normal());
  if (random.uniform() < cluster.straggle.probability) factor_ *= cluster.straggle.factor;
}

void EmulatedCompute::take(Seconds time) {
  const Nanoseconds now = clock_now();
  const Nanoseconds begin = now - returned_ < at_once ? now - overslept_ : now;
  const auto length =
      static_cast<Nanoseconds>(std::llround(time.count() * factor_ * environment_.dilate * 1e9));
  const Nanoseconds end = begin + length;
  std::this_thread::sleep_until(Clock::time_point(std::chrono::nanoseconds(end)));
  returned_ = clock_now();
  overslept_ = std::max<Nanoseconds>(0, returned_ - end);
}

void EmulatedCompute::forward(int layer) {
  take(trace_.layers[static_cast<std::size_t>(layer)].forward);
}

void EmulatedCompute::backward(int layer) {
  take(trace_.layers[static_cast<std::size_t>(layer)].backward);
}

void EmulatedCompute::optimizer_step() {
  const Seconds given = environment_.cluster.optimizer_step;
  take(given.count() > 0 ? given : trace_.optimizer_step);
}

}  // namespace riffle::lab
