// Where a closed form exists, the events add up to it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>

#include "simulate/pipeline.h"
#include "testing.h"

namespace riffle {
namespace {

using testing::simulate_spec;
using testing::small_trace;

Cluster flat(int workers, const std::string& more = "") {
  return parse_cluster("flat:" + std::to_string(workers) + ",latency=50us,bandwidth=1Gbps" + more);
}

TEST(ClosedForm, OneAllReduceOnOneSwitch) {
  const Trace trace = small_trace();
  for (const std::string algorithm : {"ring", "halving-doubling", "recursive-doubling", "direct"})
    for (const int n : {2, 3, 5, 8, 16, 27, 64})
      for (const std::string gamma : {"", ",gamma=0.3ns"}) {
        // Recursive doubling over other n: the next test.
        if (algorithm == "recursive-doubling" && !std::has_single_bit(static_cast<unsigned>(n)))
          continue;
        const Cluster cluster = flat(n, ",algorithm=" + algorithm + gamma);
        const CostModel cost(cluster);
        const Seconds expected =
            trace.compute() + cost.time({.group = World(cluster).ranks()}, trace.bytes());
        const Simulation result = simulate_spec(trace, cluster, "bsp");
        EXPECT_NEAR(result.iteration / expected, 1, 1e-9) << algorithm << " " << n << gamma;
      }
}

// From when all begin until the last has the result.
double one_all_reduce(const Trace& trace, const Cluster& cluster) {
  Timeline timeline;
  simulate(trace, cluster, StrategyTable::builtin().make("bsp"),
           {.steps = 1, .warmup = 0, .timeline = &timeline});
  double start = 1e300;
  double end = 0;
  for (const Event& event : timeline.events) {
    if (event.kind != EventKind::exchange || event.step != 0) continue;
    start = std::min(start, event.start.count());
    end = std::max(end, event.end.count());
  }
  return end - start;
}

// Some members take no part in the first round, go ahead and share links with those who do. As long
// as a vector takes no longer than a latency this costs one vector more, and beyond that another
// algorithm is chosen.
TEST(ClosedForm, RecursiveDoublingOverAnyNumber) {
  for (int n = 3; n <= 64; ++n)
    for (const int elements : {1, 100, 1000, 1560}) {  // of at most 6250 bytes: 50 us at 1 Gb/s
      Trace trace = small_trace();
      trace.layers = {trace.layers.front()};
      trace.layers.front().elements = elements;
      const Cluster cluster = flat(n, ",algorithm=recursive-doubling");
      const Seconds expected =
          CostModel(cluster).time({.group = World(cluster).ranks()}, trace.bytes());
      EXPECT_NEAR(one_all_reduce(trace, cluster) / expected.count(), 1, 1e-9)
          << n << " members, " << elements << " elements";
    }
}

TEST(ClosedForm, RecursiveDoublingIsChosenOnlyWhereItsFormHolds) {
  for (int n = 3; n <= 200; ++n) {
    if (std::has_single_bit(static_cast<unsigned>(n))) continue;
    const Cluster cluster = flat(n);
    const CostModel cost(cluster);
    for (const int bytes : {6250, 10'000, 1'000'000})
      EXPECT_NE(cost.algorithm({.group = World(cluster).ranks()}, Bytes{bytes}),
                Algorithm::recursive_doubling)
          << n << " members, " << bytes << " bytes";
  }
}

// T_ring(n, M) = 2(n-1) alpha + 2(n-1)/n M beta, written out.
TEST(ClosedForm, RingIsThePapersFormula) {
  const Trace trace = small_trace();
  for (const int n : {2, 7, 16, 100}) {
    const Simulation result = simulate_spec(trace, flat(n, ",algorithm=ring"), "bsp");
    const double bytes = 4e6;
    const double expected = 12e-3 + 2 * (n - 1) * 50e-6 + 2.0 * (n - 1) / n * bytes / 125e6;
    EXPECT_NEAR(result.iteration.count() / expected, 1, 1e-9) << n;
  }
}

TEST(ClosedForm, LocalSgdPaysOnceARound) {
  const Trace trace = small_trace();
  for (const int tau : {1, 4, 8}) {
    const Cluster cluster = flat(8);
    const Seconds exchange =
        CostModel(cluster).time({.group = World(cluster).ranks()}, trace.bytes());
    const Simulation result = simulate_spec(trace, cluster, "local-sgd:tau=" + std::to_string(tau));
    EXPECT_NEAR(result.iteration / (trace.compute() + exchange / tau), 1, 1e-9) << tau;
  }
}

// One bucket of all layers: nothing hides, a step is computing and the group's all-reduce.
TEST(ClosedForm, SesgdPaysForItsGroup) {
  const Trace trace = small_trace();
  for (const int n : {4, 16, 64}) {
    const int group = n == 4 ? 2 : n == 16 ? 4 : 8;
    for (const std::string algorithm : {"ring", "halving-doubling", "direct"}) {
      const Cluster cluster = flat(n, ",algorithm=" + algorithm);
      const Seconds exchange =
          CostModel(cluster).time({.group = Membership::all(group).ranks}, trace.bytes());
      const Simulation result =
          simulate_spec(trace, cluster, "sesgd:bucket=single,group=" + std::to_string(group));
      EXPECT_NEAR(result.iteration / (trace.compute() + exchange), 1, 1e-9) << n << algorithm;
    }
  }
}

// papers.md 4.3: a round of tau steps stalls for max(0, T_comm - d*T_comp).
TEST(ClosedForm, DasgdStallsForWhatTheDelayDoesNotHide) {
  const Trace trace = small_trace();
  const Seconds compute = trace.compute();
  for (const std::string bandwidth : {"10Gbps", "1Gbps", "500Mbps", "200Mbps", "100Mbps"})
    for (const int tau : {1, 2, 4, 8})
      for (int delay = 1; delay <= tau; ++delay) {
        const Cluster cluster = parse_cluster("flat:8,latency=100us,bandwidth=" + bandwidth);
        const Seconds exchange =
            CostModel(cluster).time({.group = World(cluster).ranks()}, trace.bytes());
        const Seconds stall = std::max(Seconds{}, exchange - delay * compute);
        const Simulation result = simulate_spec(
            trace, cluster, "dasgd:tau=" + std::to_string(tau) + ",delay=" + std::to_string(delay));
        EXPECT_NEAR(result.iteration * tau / (tau * compute + stall), 1, 1e-6)
            << bandwidth << " tau " << tau << " delay " << delay;
      }
}

// Streaming diloco: every fragment of a round stalls for what its overlap does not hide.
TEST(ClosedForm, FragmentsStallForWhatTheOverlapDoesNotHide) {
  const Trace trace = small_trace(8);
  const Seconds compute = trace.compute();
  int stalled = 0;
  for (const std::string bandwidth : {"10Gbps", "1Gbps", "200Mbps", "50Mbps"})
    for (const int fragments : {1, 2, 4})
      for (const int overlap : {1, 2}) {
        const int tau = 12;
        const Cluster cluster = parse_cluster("flat:8,latency=100us,bandwidth=" + bandwidth);
        const Seconds exchange = CostModel(cluster).time({.group = World(cluster).ranks()},
                                                         Bytes{trace.bytes().count / fragments});
        const Seconds stall = std::max(Seconds{}, exchange - overlap * compute);
        stalled += stall > Seconds{} ? 1 : 0;
        const Simulation result = simulate_spec(
            trace, cluster,
            fmt::format("diloco:tau={},fragments={},overlap={}", tau, fragments, overlap));
        EXPECT_NEAR(result.iteration * tau / (tau * compute + fragments * stall), 1, 1e-6)
            << bandwidth << " fragments " << fragments << " overlap " << overlap;
      }
  EXPECT_GT(stalled, 4);
  EXPECT_LT(stalled, 20);  // of 24
}

// The recurrences of WFBP and MG-WFBP hold where exchanges follow each other on one switch.
TEST(ClosedForm, PipelineRecurrences) {
  const Trace trace = small_trace(12, 100'000, milliseconds(0.3), milliseconds(0.7));
  for (const std::string where :
       {"flat:8,latency=50us,bandwidth=1Gbps",
        "flat:13,latency=500us,bandwidth=10Gbps,algorithm=halving-doubling",
        "flat:16,latency=10us,bandwidth=200Mbps,gamma=0.2ns", "fit:64,a=0.7ms,b=0.96ns",
        "flat:8,latency=50us,bandwidth=1Gbps,algorithm=tree"})
    for (const std::string spec : {"bsp", "single", "wfbp", "ddp:bucket=1MiB", "mg-wfbp"}) {
      const Cluster cluster = parse_cluster(where);
      const World world(cluster);
      const CostModel cost(cluster);
      const NamedStrategy strategy = StrategyTable::builtin().make(spec);
      const BucketPlan buckets = strategy->buckets(trace, cost, world);
      const PipelineTimes expected =
          pipeline(trace, cost, buckets, strategy->program(0, world, buckets));
      const Simulation result = simulate(trace, cluster, strategy);
      EXPECT_NEAR(result.iteration / expected.iteration, 1, 1e-9) << spec << " on " << where;
      ASSERT_EQ(result.buckets.size(), expected.starts.size());
      for (std::size_t i = 0; i < buckets.size(); ++i) {
        EXPECT_NEAR(result.buckets[i].start / expected.starts[i], 1, 1e-9);
        EXPECT_NEAR(result.buckets[i].end / expected.ends[i], 1, 1e-9);
      }
    }
}

// Equal racks that start together: the two-level walk of the cost model is exact.
TEST(ClosedForm, EqualRacks) {
  const Trace trace = small_trace();
  for (const std::string algorithm : {"ring", "halving-doubling", "two-level"}) {
    const Cluster cluster =
        parse_cluster("racks:4x8,inner=20us/10Gbps,outer=200us/1Gbps,algorithm=" + algorithm);
    const Seconds exchange =
        CostModel(cluster).time({.group = World(cluster).ranks()}, trace.bytes());
    const Simulation result = simulate_spec(trace, cluster, "bsp");
    // Rounds need not wait for each other, so the events may be faster than the walk, not slower.
    EXPECT_LE(result.iteration, (trace.compute() + exchange) * (1 + 1e-9)) << algorithm;
    EXPECT_GE(result.iteration, (trace.compute() + exchange * 0.5)) << algorithm;
  }
}

// A long two-level all-reduce keeps its busiest link busy: the first segment goes through all
// rounds, each byte behind it costs what it takes there.
TEST(ClosedForm, TwoLevelInSegments) {
  // Worker's link: 2(1/2 + 1/2 * 3/4) M; uplink: (2 * 3/4) M. Bandwidths make the other the limit.
  const auto time = [](const std::string& links, int elements) {
    const Trace trace = small_trace(1, elements, milliseconds(1), milliseconds(2));
    const Cluster cluster = parse_cluster("racks:4x2," + links + ",algorithm=two-level");
    const Seconds modelled =
        CostModel(cluster).time({.group = World(cluster).ranks()}, trace.bytes());
    const Seconds simulated = simulate_spec(trace, cluster, "bsp").iteration - trace.compute();
    return std::pair(simulated, modelled);
  };
  for (const auto& [links, seconds_per_byte] :
       {std::pair{"inner=20us/1GB/s,outer=100us/10GB/s", 1.75e-9},
        std::pair{"inner=20us/1GB/s,outer=100us/100MB/s", 15e-9}})
    for (const int elements : {2'000'000, 8'000'000}) {
      const auto [simulated, modelled] = time(links, elements);
      const Seconds least{4.0 * elements * seconds_per_byte};
      EXPECT_GE(simulated, least) << links << ", " << elements;
      EXPECT_GE(modelled, least) << links << ", " << elements;
      EXPECT_LE(modelled, least * 1.25) << links << ", " << elements;
      EXPECT_NEAR(simulated / modelled, 1, 0.1) << links << ", " << elements;
    }
}

// What fits into one segment goes through the rounds one after the other.
TEST(ClosedForm, AShortTwoLevelIsNotCut) {
  const Trace trace = small_trace(1, 65'536, milliseconds(1), milliseconds(2));
  const std::string links = "racks:2x4,inner=1ms/100MB/s,outer=1ms/100MB/s,algorithm=two-level";
  const Cluster cluster = parse_cluster(links);
  // Inside twice 3/4 M; across, the four owners of a rack share the uplink: M/8 each, twice.
  const double bytes = 4.0 * 65'536 * (2 * 0.75 + 2 * 4 / 8.0) / 1e8;
  EXPECT_NEAR(
      simulate_spec(trace, cluster, "bsp").iteration / (trace.compute() + Seconds(bytes + 6e-3)), 1,
      1e-9);
}

}  // namespace
}  // namespace riffle
