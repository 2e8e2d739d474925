// Two-level calls over racks that the caller gives.
#include <gtest/gtest.h>

#include "riffle/collective.h"
#include "riffle/error.h"
#include "support/ranks.h"

namespace riffle {
namespace {

TEST(Racks, OfTheCaller) {
  LoopbackWorld world(5);
  test::run_ranks(world, [&](Rank rank) {
    Collectives collectives(world.engine(rank));
    std::vector<float> values(100, static_cast<float>(rank));
    const Partition racks{{0, 3}, {1, 2, 4}, {7, 8}};
    collectives.all_reduce({0, 1, 2, 3, 4}, tensor_view(values),
                           {.algorithm = Algorithm::two_level, .racks = racks});
    EXPECT_EQ(values, std::vector<float>(100, 2));
    const Partition too_few{{0, 3}, {1, 2}};
    EXPECT_THROW(collectives.all_reduce({0, 1, 2, 3, 4}, tensor_view(values),
                                        {.algorithm = Algorithm::two_level, .racks = too_few}),
                 UsageError);
  });
}

}  // namespace
}  // namespace riffle
