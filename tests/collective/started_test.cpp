// The public face of started calls: they overlap, and go on in the order the caller likes.
#include <gtest/gtest.h>

#include "riffle/collective.h"
#include "riffle/error.h"
#include "support/ranks.h"

namespace riffle {
namespace {

TEST(Started, LanesFinishInAnyOrder) {
  LoopbackWorld world(test::hosts_of_three(6));
  test::run_ranks(world, [&](Rank rank) {
    Collectives collectives(world.engine(rank));
    const Group all = Membership::all(6).ranks;
    std::vector<std::vector<float>> values;
    std::vector<Pending> pending;
    for (int lane = 0; lane < 4; ++lane) {
      values.emplace_back(1000, static_cast<float>(rank + lane));
      pending.push_back(collectives.start_all_reduce(all, elements(values.back()), {.lane = lane}));
    }
    // Each rank waits in another order.
    for (int i = 0; i < 4; ++i) pending[static_cast<std::size_t>((i + rank) % 4)].wait();
    for (int lane = 0; lane < 4; ++lane)
      EXPECT_EQ(values[static_cast<std::size_t>(lane)],
                std::vector<float>(1000, 2.5F + static_cast<float>(lane)));
    EXPECT_TRUE(pending[0].test());
  });
}

TEST(Started, EveryCollective) {
  LoopbackWorld world(3);
  test::run_ranks(world, [&](Rank rank) {
    Collectives collectives(world.engine(rank));
    const Group all{0, 1, 2};
    std::vector<double> values(48, rank);
    const Elements data = elements(values);
    collectives.start_broadcast(all, 2, data).wait();
    EXPECT_EQ(values.back(), 2);
    collectives.start_reduce_scatter(all, data, {.reduction = Reduction::sum}).wait();
    collectives.start_all_gather(all, data).wait();
    EXPECT_EQ(values, std::vector<double>(48, 6));
    values.assign(48, rank);
    collectives.start_shift(all, 1, data).wait();
    EXPECT_EQ(values.front(), rank == 0 ? 1 : rank - 0.5);
    collectives.start_barrier(all).wait();
  });
}

TEST(Started, ADroppedCallIsToldToTheOthers) {
  LoopbackWorld world(3);
  test::run_ranks(world, [&](Rank rank) {
    Collectives collectives(world.engine(rank));
    std::vector<float> values(100, 1);
    if (rank == 1) {
      (void)collectives.start_all_reduce({0, 1, 2}, elements(values),
                                         {.algorithm = Algorithm::ring});
      return;
    }
    try {
      collectives.all_reduce({0, 1, 2}, elements(values), {.algorithm = Algorithm::ring});
      ADD_FAILURE() << "rank " << rank << " noticed nothing";
    } catch (const CommError& error) {
      EXPECT_EQ(error.failure(), CommFailure::aborted) << error.what();
      EXPECT_EQ(error.rank(), 1) << error.what();
    }
  });
}

TEST(Racks, OfTheCaller) {
  LoopbackWorld world(5);
  test::run_ranks(world, [&](Rank rank) {
    Collectives collectives(world.engine(rank));
    std::vector<float> values(100, static_cast<float>(rank));
    const Partition racks{{0, 3}, {1, 2, 4}, {7, 8}};
    collectives.all_reduce({0, 1, 2, 3, 4}, elements(values),
                           {.algorithm = Algorithm::two_level, .racks = racks});
    EXPECT_EQ(values, std::vector<float>(100, 2));
    const Partition too_few{{0, 3}, {1, 2}};
    EXPECT_THROW(collectives.all_reduce({0, 1, 2, 3, 4}, elements(values),
                                        {.algorithm = Algorithm::two_level, .racks = too_few}),
                 UsageError);
  });
}

}  // namespace
}  // namespace riffle
