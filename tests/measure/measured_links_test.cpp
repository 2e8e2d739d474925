// What is measured on links of known latency and bandwidth: real messages and threads, each rank a
// host of its own. Latencies are long enough that a busy machine adds little to them.
#include <gtest/gtest.h>

#include <cmath>

#include "measure/calls.h"
#include "measure/network.h"
#include "measure/pairs.h"
#include "support/emulated_links.h"
#include "support/ranks.h"

namespace riffle::measure {
namespace {

// Narrow, so that a large call is all transfer: its pieces hide latencies of each other, which
// closed forms do not know.
constexpr Link kLink{milliseconds(10), {10e6}};
// A busy machine disturbs a measurement now and then; what is wrong is wrong every time.
constexpr int kTries = 3;

std::vector<std::string> own_hosts(int n) {
  std::vector<std::string> hosts;
  for (int r = 0; r < n; ++r) hosts.push_back("host" + std::to_string(r));
  return hosts;
}

void run_emulated(int n, const std::function<void(Engine&, const collective::Control&)>& body) {
  LoopbackWorld world(own_hosts(n), {.failure_timeout = Seconds(30)});
  test::EmulatedLinks links(n, kLink);
  test::run_ranks(world, [&](Rank rank) {
    test::EmulatedEngine engine(world.engine(rank), links);
    Collectives collectives(engine);
    body(engine, {collectives, Membership::all(n).ranks, Seconds(60)});
  });
}

bool is_close(const Link& found) {
  const double latency = found.latency / kLink.latency;
  const double rate = found.bandwidth.bytes_per_second / kLink.bandwidth.bytes_per_second;
  return std::abs(latency - 1) <= 0.15 && std::abs(rate - 1) <= 0.15;
}

using Measurement = std::function<Link(Engine&, const collective::Control&)>;

void expect_known_link(int n, const Measurement& measure) {
  std::string found;
  for (int i = 0; i < kTries; ++i) {
    Link link;
    run_emulated(n, [&](Engine& engine, const collective::Control& control) {
      const Link mine = measure(engine, control);
      if (engine.rank() == 0) link = mine;
    });
    if (is_close(link)) return;
    found += " " + print(link.latency) + " " + print(link.bandwidth) + ",";
  }
  ADD_FAILURE() << n << " hosts:" << found << " not " << print(kLink.latency) << " "
                << print(kLink.bandwidth);
}

// One way between hosts, by calls of recursive doubling (2, 4 and 16), of direct (3, 5 and 8) and
// of halving-doubling (16, the large ones).
TEST(MeasuredLinks, TimedCallsFindLatencyAndBandwidth) {
  for (const int n : {2, 3, 4, 5, 8, 16})
    expect_known_link(n, [](Engine& engine, const collective::Control& control) {
      return measured_cluster(engine, control).domains.back().uplink;
    });
}

TEST(MeasuredLinks, BouncedMessagesFindLatencyAndBandwidth) {
  for (const int n : {2, 5})
    expect_known_link(n, [](Engine& engine, const collective::Control& control) {
      return probe_pairs(engine, control, control.ranks, {}).between(0, control.ranks.size() - 1);
    });
}

}  // namespace
}  // namespace riffle::measure
