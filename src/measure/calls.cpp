#include "measure/calls.h"

#include <algorithm>
#include <vector>

#include "base/median.h"
#include "collective/choice.h"

namespace riffle::measure {
namespace {

constexpr Bytes kSmall = kibibytes(1);
constexpr Bytes kLarge = mebibytes(1);
constexpr int kTimes = 5;
// No link is better; what says so was disturbed.
constexpr Seconds kLeastLatency{1e-8};
constexpr double kLeastSecondsPerByte = 1e-12;

Algorithm cheapest(int n, const Link& link, Bytes size) {
  Cluster cluster;
  cluster.domains.push_back({"root", -1, {}});
  cluster.workers.assign(static_cast<std::size_t>(n), {.domain = 0, .link = link});
  return CostModel(cluster).algorithm({.group = Membership::all(n).ranks}, size);
}

}  // namespace

TellingCalls telling_calls(int n) {
  const Link far{Seconds(1), {1e12}};
  const Link narrow{Seconds(1e-9), {1e3}};
  return {.small = {cheapest(n, far, kSmall), kSmall},
          .large = {cheapest(n, narrow, kLarge), kLarge}};
}

// Two equations: time = latencies * a + bytes * M * b.
Link link_of(int n, const TellingCalls& calls) {
  const auto form = [&](const TimedCall& call) {
    return closed_form(call.algorithm, Collective::all_reduce, n);
  };
  const double small_latencies = form(calls.small).latencies;
  const double large_latencies = form(calls.large).latencies;
  const double small_bytes = form(calls.small).bytes * static_cast<double>(calls.small.size.count);
  const double large_bytes = form(calls.large).bytes * static_cast<double>(calls.large.size.count);
  const double low = calls.small.time.count();
  const double high = calls.large.time.count();
  const double determinant = small_latencies * large_bytes - large_latencies * small_bytes;
  const double per_byte = std::max((small_latencies * high - large_latencies * low) / determinant,
                                   kLeastSecondsPerByte);
  const Seconds latency{(low - small_bytes * per_byte) / small_latencies};
  return {std::max(latency, kLeastLatency), {1 / per_byte}};
}

Link time_calls(Engine& engine, const collective::Control& control, const Group& group) {
  TellingCalls calls = telling_calls(group.size());
  const Buffer buffer = engine.allocate(static_cast<std::size_t>(kLarge.count));
  const auto time = [&](const TimedCall& call) {
    const auto values =
        buffer.as<double>().first(static_cast<std::size_t>(call.size.count) / sizeof(double));
    CollectiveOptions options = control.options();
    options.background = true;
    if (!collective::is_on_one_host(engine, group)) options.algorithm = call.algorithm;
    std::vector<Seconds> times;
    for (int i = 0; i < kTimes; ++i) {
      const auto start = Clock::now();
      control.collectives.all_reduce(group, tensor_view(values), options);
      times.emplace_back(Clock::now() - start);
    }
    return median(times);
  };
  (void)time(calls.large);  // touches the memory
  calls.small.time = time(calls.small);
  calls.large.time = time(calls.large);
  return link_of(group.size(), calls);
}

}  // namespace riffle::measure
