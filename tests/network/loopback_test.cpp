// Collectives over UCX without namespaces, on the loopback interface: every rank a host of its own,
// or hosts of two ranks. Needs no privileges.
#include <gtest/gtest.h>

#include "support/collective_reference.h"
#include "support/workers.h"

namespace riffle::test {
namespace {

class Far : public testing::TestWithParam<Kind> {};

TEST_P(Far, RandomCollectivesOfRandomGroups) {
  if (GetParam() == Kind::ucx && !ucx_is_available()) GTEST_SKIP() << "built without UCX";
  constexpr int size = 5;
  run_world(GetParam(), size, [](Engine& engine) {
    Collectives collectives(engine);
    Random random(5);
    for (int i = 0; i < 200; ++i) {
      Trial trial = random_trial(random, size, i % 40 == 0 ? 600'000 : 3'000);
      trial.places = 1 + i % 3;
      trial.lane = i % 4;
      if (trial.group.contains(engine.rank())) check(engine, collectives, i % 7 == 0, trial);
      if (testing::Test::HasFailure()) return;
    }
  });
}

constexpr Algorithm algorithms[] = {Algorithm::ring, Algorithm::halving_doubling,
                                    Algorithm::recursive_doubling, Algorithm::direct,
                                    Algorithm::two_level};

TEST_P(Far, EveryAlgorithmAtManySizes) {
  if (GetParam() == Kind::ucx && !ucx_is_available()) GTEST_SKIP() << "built without UCX";
  run_world(GetParam(), 5, [](Engine& engine) {
    Collectives collectives(engine);
    std::uint64_t seed = 0;
    for (const Algorithm algorithm : algorithms)
      for (const std::size_t count : {0, 1, 1000, 32'768, 262'145, 1'000'000})
        check(engine, collectives, false,
              {.group = Group({0, 1, 2, 3, 4}),
               .count = count,
               .seed = ++seed,
               .algorithm = algorithm});
  });
}

INSTANTIATE_TEST_SUITE_P(All, Far, testing::Values(Kind::tcp, Kind::ucx, Kind::mixed),
                         [](const auto& each) { return name_of(each.param); });

}  // namespace
}  // namespace riffle::test
