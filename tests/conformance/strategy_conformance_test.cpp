// Every registered strategy, with its defaults and with every value its options list, keeps the
// promises that runtime, simulators and planner rely on. Strategies of users register at run time
// and are held to the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "riffle/error.h"
#include "riffle/simulate.h"
#include "riffle/verify.h"
#include "strategies/example.h"
#include "strategies/traffic.h"
#include "support/programs.h"

namespace riffle::test {
namespace {

// A user's strategy: neighbours average in pairs, the pairs shift by one place every step.
class Pairs : public Strategy {
 public:
  [[nodiscard]] BucketPlan buckets(const Trace& of, const CostModel& /*cost*/,
                                   const World& /*world*/) const override {
    return bucket_per_layer(of);
  }
  [[nodiscard]] Program program(Step step, const World& world,
                                const BucketPlan& buckets) const override {
    const std::vector<Rank>& ranks = world.ranks().ranks();
    Partition pairs;
    std::size_t at = 0;
    if (step % 2 == 1) pairs.push_back(Group{ranks[at++]});
    for (; at + 1 < ranks.size(); at += 2) pairs.push_back(Group{ranks[at], ranks[at + 1]});
    if (at < ranks.size()) pairs.push_back(Group{ranks[at]});
    Program program;
    for (const Bucket& bucket : buckets)
      for (const Group& pair : pairs)
        program.add({.bucket = bucket.id,
                     .payload = Payload::weight,
                     .group = pair,
                     .start = Start::bucket_stepped,
                     .due = before_forward()});
    return program;
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override {
    return {.period = 2, .mixed = Payload::weight};
  }
};

StrategyTable table() {
  StrategyTable all = StrategyTable::builtin();
  all.add({.name = "pairs", .summary = "neighbours in pairs", .make = [](const Options&) {
             return std::make_unique<Pairs>();
           }});
  return all;
}

// hierarchical takes no other algorithm than its own.
bool is_allowed(const StrategyTable& known, const std::string& spec) {
  try {
    static_cast<void>(known.make(spec));
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

// Each strategy by itself, once with every word that an option lists, and as the planner tries it.
std::vector<std::string> specs() {
  std::vector<std::string> all;
  const StrategyTable known = table();
  for (const StrategyInfo& info : known.all()) {
    all.push_back(info.name);
    for (const OptionInfo& option : info.options)
      for (const std::string& word : option.words()) {
        const std::string spec = info.name + ":" + option.key + "=" + word;
        if (word != option.default_value() && is_allowed(known, spec)) all.push_back(spec);
      }
    for (const std::string& spec : info.specs()) all.push_back(spec);
  }
  // Numbers that neither a word nor a candidate has.
  for (const char* more :
       {"sesgd:group=5,every=2", "sesgd:schedule=random,group=3,every=4",
        "sesgd:schedule=random,order=combine-then-adapt,mix_state=true", "sesgd:bucket=1MB",
        "ds-sync:pattern=bottleneck,delay=1,mix_state=true", "ds-sync:pattern=bottleneck,delay=4",
        "ds-sync:pattern=bottleneck,order=combine-then-adapt", "dasgd:tau=3,delay=3",
        "dasgd:merge=mix,xi=0.5,delay=4,mix_state=true", "local-sgd:tau=1", "diloco:tau=3",
        "diloco:tau=7,fragments=3,overlap=2,mix_state=true", "diloco:tau=5,overlap=4,xi=0.25",
        "slowmo:tau=3,mix_state=true", "noloco:tau=3,mix_state=true"})
    all.emplace_back(more);
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

std::vector<int> sizes() {
  std::vector<int> all(33);
  std::iota(all.begin(), all.end(), 1);
  all.insert(all.end(), {64, 100, 127, 256});
  return all;
}

class StrategyConformance : public testing::TestWithParam<std::string> {
 protected:
  NamedStrategy strategy_ = table().make(GetParam());
  Trace trace_ = example_trace();

  [[nodiscard]] BucketPlan buckets(const World& world) const {
    return strategy_->buckets(trace_, CostModel(world.cluster), world);
  }
  void expect_proved(const World& world) const {
    const Verification result = verify(strategy_, world, trace_);
    for (const Problem& problem : result.problems)
      ADD_FAILURE() << GetParam() << " on " << print(world.ranks()) << ": " << print(problem);
    const Traits traits = strategy_->traits_with(world, buckets(world));
    EXPECT_EQ(result.period.value_or(0), traits.period);
    EXPECT_TRUE(!traits.exact || result.steps_to_consensus == 1);
    EXPECT_EQ(traits.exact, traits.mixed == Payload::gradient);
    EXPECT_EQ(traits.exact, table().info(strategy_.name).exact);
    EXPECT_GT(traits.effective_step, 0);
    EXPECT_TRUE(traits.effective_step == 1 || (traits.effective_step < 1 && !traits.exact));
  }
};

TEST_P(StrategyConformance, EveryLayerIsInExactlyOneBucket) {
  for (const int n : {1, 4, 7, 16}) {
    const BucketPlan plan = buckets(World(example_racks(n)));
    int next = static_cast<int>(trace_.layers.size()) - 1;
    Bytes bytes;
    Seconds compute{};
    for (std::size_t i = 0; i < plan.size(); ++i) {
      EXPECT_EQ(plan[i].id, static_cast<int>(i));
      EXPECT_EQ(plan[i].last, next);
      EXPECT_LE(plan[i].first, plan[i].last);
      next = plan[i].first - 1;
      bytes += plan[i].bytes;
      compute += plan[i].compute;
    }
    EXPECT_EQ(next, -1);
    EXPECT_EQ(bytes, trace_.bytes());
    EXPECT_NEAR(compute / (trace_.forward() + trace_.backward()), 1, 1e-12);
  }
}

TEST_P(StrategyConformance, EqualArgumentsGiveEqualPrograms) {
  for (const int n : {1, 6, 13}) {
    const World world(example_racks(n));
    const BucketPlan plan = buckets(world);
    std::vector<Program> first;
    first.reserve(12);
    for (Step step = 0; step < 12; ++step) first.push_back(strategy_->program(step, world, plan));
    // Another object, other questions before, an equal world that is not the same one.
    const NamedStrategy other = table().make(GetParam());
    const World again = world_from_json(to_json(world), "test");
    for (Step step = 12; step-- > 0;) {
      static_cast<void>(other->program(step + 5, World(example_racks(n + 1)), plan));
      EXPECT_EQ(other->program(step, again, plan), first[step]) << "step " << step;
    }
  }
}

TEST_P(StrategyConformance, GroupsAreNeverEmptyAndProgramsSurviveJson) {
  const World world = without(World(example_racks(11)), {2, 7});
  const BucketPlan plan = buckets(world);
  for (Step step = 0; step < 24; ++step) {
    const Program program = strategy_->program(step, world, plan);
    for (const Exchange& exchange : program.exchanges) {
      EXPECT_FALSE(exchange.group.empty());
      EXPECT_FALSE(exchange.group.contains(7));
      EXPECT_LT(exchange.bucket, static_cast<int>(plan.size()));
    }
    EXPECT_EQ(program_from_json(to_json(program), "test"), program);
  }
}

TEST_P(StrategyConformance, ProvedForAnyNumberOfWorkers) {
  for (const int n : sizes()) expect_proved(World(example_racks(n)));
}

TEST_P(StrategyConformance, ProvedOnOneSwitch) {
  for (const int n : {1, 2, 3, 5, 8, 12, 16, 31}) expect_proved(flat(n));
}

TEST_P(StrategyConformance, ProvedWithRanksMissing) {
  expect_proved(without(racks("4x4"), {0}));
  expect_proved(without(racks("4x4"), {4, 5, 6, 7}));       // a rack
  expect_proved(without(racks("4x4"), {1, 6, 7, 11, 12}));  // racks of different sizes
  expect_proved(without(racks("2x8"), {0, 1, 2, 3, 4, 5, 6}));
  expect_proved(without(racks("3x3", ",slow=1*5"), {0, 8}));
  expect_proved(without(flat(9), {3, 4}));
  expect_proved(without(flat(5), {0, 1, 2, 3}));
}

TEST_P(StrategyConformance, SimulatorSendsWhatTheCostModelSays) {
  // A tree has a formula only; the simulator needs messages.
  if (GetParam().find("tree") != std::string::npos) GTEST_SKIP() << "a tree has no messages";
  for (const World& world : {racks("4x4"), racks("3x4"), racks("2x3"), flat(4), flat(12)}) {
    const Simulation simulated = simulate(trace_, world.cluster, strategy_);
    const Traffic expected = sent_per_step(strategy_, world, trace_);
    EXPECT_NEAR(simulated.bytes_per_worker, expected.bytes, 1e-9 * expected.bytes);
    // Random groups differ in how they lie in the racks, so in their algorithm; the simulator's 32
    // steps begin one step later where exchanges reach into the next step.
    const bool random = strategy_->traits(world).period == 0;
    EXPECT_NEAR(simulated.messages_per_worker, expected.messages,
                (random ? 1.0 / 32 : 1e-9) * expected.messages);
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, StrategyConformance, testing::ValuesIn(specs()), test_name);

TEST(StrategyTable, ATakenNameIsRefused) {
  StrategyTable all = table();
  EXPECT_THROW(all.add({.name = "pairs", .summary = "", .make = {}}), UsageError);
}

}  // namespace
}  // namespace riffle::test
