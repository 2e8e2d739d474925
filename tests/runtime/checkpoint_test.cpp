// A session that is saved and resumed goes on bit for bit.
#include <gtest/gtest.h>

#include <algorithm>

#include "refusal.h"
#include "runtime/reference.h"
#include "support/workers.h"

namespace riffle {
namespace {

using test::Toy;
using test::Vector;

constexpr int kBefore = 9;
constexpr int kAfter = 11;
constexpr const char* kCluster = "racks:2x2,inner=20us/10Gbps,outer=200us/1Gbps";

class Resumed : public testing::TestWithParam<std::string> {};

TEST_P(Resumed, GivesTheSameBits) {
  const std::string& spec = GetParam();
  test::run_world(test::Kind::loopback, 4, [&](Engine& engine) {
    test::ToyOptions options{.cluster = parse_cluster(kCluster),
                             .mixes_state = spec.find("mix_state") != std::string::npos};
    Collectives collectives(engine);
    options.collectives = &collectives;
    std::vector<std::byte> bytes;
    Vector x;
    Vector v;
    Vector expected;
    {
      Toy toy(engine, spec, options);
      toy.train(kBefore);
      bytes = toy.session().save();
      x = toy.weights();
      v = toy.velocity;
      toy.train(kAfter);
      expected = toy.weights();
    }
    options.resume = bytes;
    options.start = 77;  // what is not restored would show
    Toy toy(engine, spec, options);
    EXPECT_EQ(toy.session().step(), kBefore);
    toy.set_weights(x);
    toy.velocity.assign(v.begin(), v.end());
    toy.train(kAfter);
    EXPECT_EQ(toy.weights(), expected) << spec << " rank " << engine.rank();
  });
}

// Every strategy of the table whose runs are alike (serving_test.cpp resumes the others), and what
// is in flight over the save.
std::vector<std::string> specs() {
  std::vector<std::string> list{"sesgd:order=combine-then-adapt",
                                "sesgd:order=combine-then-adapt,mix_state=true",
                                "ds-sync:pattern=bottleneck,delay=3,bucket=layer",
                                "dasgd:tau=4,delay=3",
                                "dasgd:tau=4,delay=4,merge=mix",
                                "diloco:tau=4",
                                "diloco:tau=4,overlap=3",
                                "diloco:tau=8,fragments=3,overlap=2,mix_state=true",
                                "slowmo:tau=4",
                                "noloco:tau=4",
                                "local-sgd:tau=4",
                                "ssp:staleness=0"};
  const StrategyTable table = StrategyTable::builtin();
  const World world(parse_cluster(kCluster));
  for (const StrategyInfo& info : table.all())
    if (!table.make(info.name)->traits(world).timed) list.push_back(info.name);
  return list;
}
INSTANTIATE_TEST_SUITE_P(Strategies, Resumed, testing::ValuesIn(specs()), [](const auto& each) {
  std::string name = each.param;
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

TEST(Resumed, RefusesWhatDoesNotFit) {
  test::run_world(test::Kind::loopback, 1, [&](Engine& engine) {
    Collectives collectives(engine);
    std::vector<std::byte> bytes;
    {
      Toy toy(engine, "wfbp", {.collectives = &collectives});
      toy.train(2);
      bytes = toy.session().save();
    }
    const auto resume = [&](const std::string& spec, std::span<const std::byte> from) {
      return refusal([&] { Toy(engine, spec, {.resume = from, .collectives = &collectives}); });
    };
    EXPECT_EQ(resume("bsp", bytes), "session state: strategy: '\"wfbp\"': now it is bsp");
    EXPECT_EQ(resume("wfbp", std::span(bytes).first(5)), "session state: cut off at 5 bytes");
    EXPECT_EQ(resume("wfbp", std::span(bytes).first(30)),
              "session state: cut off, or no session state");
    bytes.push_back({});
    EXPECT_EQ(resume("wfbp", bytes), "session state: 1 bytes too many");
  });
}

}  // namespace
}  // namespace riffle
