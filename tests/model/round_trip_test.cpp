// Properties of all core data: JSON both ways gives the same value, and every value prints.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "random_data.h"
#include "riffle/import.h"

namespace riffle {
namespace {

constexpr std::uint64_t kRounds = 500;

TEST(RoundTrip, Trace) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Random random(seed);
    const Trace trace = random_trace(random);
    const std::string json = to_json(trace);
    ASSERT_EQ(trace_from_json(json, "t"), trace) << "seed " << seed << "\n" << json;
    ASSERT_EQ(import_trace(json, "t"), trace) << "seed " << seed;
    ASSERT_FALSE(print(trace).empty());
  }
}

TEST(RoundTrip, Cluster) {
  int irregular = 0;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Random random(seed);
    const Cluster cluster = random_cluster(random);
    const std::string json = to_json(cluster);
    ASSERT_EQ(cluster_from_json(json, "c"), cluster) << "seed " << seed << "\n" << json;
    const std::string printed = print(cluster);
    if (printed.ends_with("irregular"))
      ++irregular;
    else
      ASSERT_EQ(parse_cluster(printed), cluster) << "seed " << seed << ": " << printed;
  }
  EXPECT_GT(irregular, 100);  // else the property says little
  EXPECT_LT(irregular, 450);
}

TEST(RoundTrip, InlineSpecsWithAnyValue) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Random random(seed);
    const std::string spec =
        fmt::format("racks:{}x{},inner={}us/{}Mbps,outer={}ms/{}GB/s,jitter={}%,straggle={}%*{}",
                    1 + random.below(5), 1 + random.below(5), random.uniform(0, 1000),
                    random.uniform(1, 1000), random.uniform(), random.uniform(0.1, 100),
                    random.uniform(0, 100), random.uniform(0, 100), random.uniform(1, 5));
    const Cluster cluster = parse_cluster(spec);
    ASSERT_EQ(parse_cluster(print(cluster)), cluster) << spec << " printed " << print(cluster);
    ASSERT_EQ(cluster_from_json(to_json(cluster), "c"), cluster) << spec;
  }
}

TEST(RoundTrip, World) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Random random(seed);
    const World world = random_world(random);
    ASSERT_EQ(world_from_json(to_json(world), "w"), world) << "seed " << seed;
    ASSERT_NO_THROW(validate(world.racks(), world.ranks())) << "seed " << seed;
    ASSERT_FALSE(print(world.racks()).empty());
  }
}

TEST(RoundTrip, Program) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Random random(seed);
    const Program program = random_program(random);
    const std::string json = to_json(program);
    ASSERT_EQ(program_from_json(json, "p"), program) << "seed " << seed << "\n" << json;
    const std::string printed = print(program);
    ASSERT_EQ(std::ranges::count(printed, '\n'), std::ssize(program.exchanges)) << printed;
  }
}

TEST(RoundTrip, Timeline) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Random random(seed);
    const Timeline timeline = random_timeline(random);
    const std::string json = to_json(timeline);
    ASSERT_EQ(timeline_from_json(json, "t"), timeline) << "seed " << seed << "\n" << json;
    for (const Event& event : timeline.events) ASSERT_FALSE(print(event).empty());
  }
}

}  // namespace
}  // namespace riffle
