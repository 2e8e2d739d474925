// Every strategy on real memory against what its programs mean, and that against the papers'
// formulas.
#include <gtest/gtest.h>

#include "runtime/interpreter.h"
#include "runtime/reference.h"
#include "support/workers.h"

namespace riffle {
namespace {

using test::Kind;
using test::Style;
using test::Vector;

constexpr int kSteps = 50;

// Two racks where there is more than one worker and both halves are equal; else flat.
Cluster cluster_for(int n) {
  const std::string links = "latency=50us,bandwidth=10Gbps";
  if (n % 2 != 0 || n == 2) return parse_cluster("flat:" + std::to_string(n) + "," + links);
  return parse_cluster("racks:2x" + std::to_string(n / 2) + ",inner=20us/10Gbps,outer=200us/1Gbps");
}

// Every strategy of the table, and numbers that a small model and few steps need.
const std::vector<std::string>& specs() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> list{
        "ddp:bucket=300B,first=100B",
        "mg-wfbp:merge=paper",
        "dear:bucket=200B",
        "wfbp:algorithm=ring",
        "sesgd:bucket=layer",
        "sesgd:group=2,schedule=random,every=2",
        "sesgd:order=combine-then-adapt,bucket=layer",
        "sesgd:mix_state=true,bucket=layer",
        "sesgd:order=combine-then-adapt,mix_state=true",
        "gossip:order=combine-then-adapt,mix_state=true",
        "ds-sync:order=combine-then-adapt",
        "ds-sync:pattern=bottleneck,delay=0,bucket=layer",
        "ds-sync:pattern=bottleneck,delay=1",
        "ds-sync:pattern=bottleneck,delay=3,bucket=layer",
        "dasgd:merge=mix",
        "dasgd:tau=3,delay=3",
        "dasgd:tau=2,delay=2,merge=mix,xi=0.5",
        "local-sgd:tau=3,mix_state=true",
        "diloco:tau=5",
        "ssp:staleness=0",
        "ssp:staleness=0,bucket=layer",
        "diloco:tau=6,fragments=3",
        "diloco:tau=7,fragments=3,overlap=2,xi=0.3",
        "diloco:tau=4,overlap=3",
        "diloco:tau=9,fragments=9,mix_state=true",
        "slowmo:tau=4,outer=0.9,momentum=0.6",
        "noloco:tau=3,outer=0.6,momentum=0.4",
        "noloco:tau=7",
    };
    const StrategyTable table = StrategyTable::builtin();
    for (const StrategyInfo& info : table.all()) list.push_back(info.name);
    return list;
  }();
  return all;
}

// What the programs of a spec mean, as the papers' formulas have it where they are known.
std::vector<Vector> expected_of(const std::string& spec, const World& world) {
  const std::vector<Vector> meant =
      test::interpret(StrategyTable::builtin().make(spec), world, kSteps);
  const auto published = test::reference(spec, world, kSteps);
  for (std::size_t i = 0; published && i < meant.size(); ++i)
    EXPECT_LT(test::distance(meant[i], (*published)[i]), 1e-12) << spec << " rank " << i;
  return meant;
}

void compare(Kind kind, int n, const std::string& spec, Style style) {
  SCOPED_TRACE(spec + " on " + std::to_string(n) + " workers, " + test::name_of(kind) +
               (style == Style::whole ? ", whole" : ", per bucket"));
  const World world(cluster_for(n));
  const bool exact = StrategyTable::builtin().make(spec)->traits(world).exact;
  const std::vector<Vector> expected = expected_of(spec, world);
  const Vector average = test::mean(expected);
  test::run_world(kind, n, [&](Engine& engine) {
    test::Toy toy(engine, spec,
                  {.style = style,
                   .cluster = world.cluster,
                   .mixes_state = spec.find("mix_state=true") != std::string::npos});
    toy.train(kSteps);
    EXPECT_LT(test::distance(toy.weights(), expected[engine.rank()]), 1e-10)
        << spec << " rank " << engine.rank();
    const double consensus = toy.session().consensus_distance();
    if (exact) {
      EXPECT_EQ(toy.session().stats().consensus_distance, consensus);
      // Bit by bit: rank 0's weights are everybody's.
      Vector first = toy.weights();
      toy.session().broadcast(std::as_writable_bytes(std::span(first)));
      EXPECT_EQ(first, toy.weights()) << spec;
    }
    toy.session().finish();
    EXPECT_LT(test::distance(toy.weights(), average), 1e-10) << spec;
    EXPECT_EQ(toy.session().stats().steps, kSteps);
  });
}

// Specs of exact strategies, or those of the others: halves of about equal length. What depends on
// clocks has no one result; serving_test.cpp has what it keeps.
void compare_all(Kind kind, Style style, const std::tuple<int, bool>& which) {
  const auto& [n, exact] = which;
  const World world(cluster_for(n));
  for (const std::string& spec : specs()) {
    const Traits traits = StrategyTable::builtin().make(spec)->traits(world);
    if (traits.exact == exact && !traits.timed) compare(kind, n, spec, style);
  }
}

std::string name(const testing::TestParamInfo<std::tuple<int, bool>>& each) {
  return (std::get<1>(each.param) ? "Exact" : "Mixing") + std::to_string(std::get<0>(each.param));
}

class Strategies : public testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(Strategies, PerBucket) {
  compare_all(Kind::loopback, Style::per_bucket, GetParam());
}
TEST_P(Strategies, Whole) {
  compare_all(Kind::loopback, Style::whole, GetParam());
}
TEST_P(Strategies, Processes) {
  compare_all(Kind::shm, Style::per_bucket, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Workers, Strategies,
                         testing::Combine(testing::Values(1, 2, 3, 4, 6, 8), testing::Bool()),
                         name);

}  // namespace
}  // namespace riffle
