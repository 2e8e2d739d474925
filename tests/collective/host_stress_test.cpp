// Many random small collectives over random overlapping groups, each checked against float64.
#include <gtest/gtest.h>

#include "support/collective_reference.h"
#include "support/workers.h"

namespace riffle::test {
namespace {

TEST(HostStress, AHundredThousandCallsOfOverlappingGroups) {
  constexpr int size = 8;
  run_world(
      Kind::shm, size,
      [](Engine& engine) {
        Collectives collectives(engine);
        Random random(7);
        for (int i = 0; i < 100'000; ++i) {
          Trial trial = random_trial(random, size, i % 50 == 0 ? 8'000 : 100);
          trial.places = 1 + i % 3;
          trial.lane = i % 4;
          if (trial.group.contains(engine.rank())) check(engine, collectives, i % 7 == 0, trial);
          if (testing::Test::HasFailure()) return;
        }
      },
      {}, Seconds(900));
}

}  // namespace
}  // namespace riffle::test
