// Collectives inside a host, against sums in float64 made from the inputs of all members.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "riffle/collective.h"
#include "riffle/error.h"
#include "riffle/random.h"
#include "support/collective_reference.h"
#include "support/workers.h"

namespace riffle::test {
namespace {

struct Setting {
  Kind kind;
  bool engine_memory;
};

class HostCollective : public testing::TestWithParam<Setting> {
 protected:
  void run(int size, const std::function<void(Engine&, Collectives&)>& body) {
    run_world(GetParam().kind, size, [&](Engine& engine) {
      Collectives collectives(engine);
      body(engine, collectives);
    });
  }
};

constexpr std::size_t sizes[] = {0, 1, 7, 1000, 4096, 4097, 70'001, 300'000};

TEST_P(HostCollective, EveryOperationAtEverySize) {
  for (const int n : {2, 3, 5})
    run(n, [&](Engine& engine, Collectives& collectives) {
      const Group group(everyone(n));
      for (const std::size_t count : sizes)
        for (const Trial::What what : Trial::all)
          check(engine, collectives, GetParam().engine_memory,
                {.what = what, .group = group, .count = count, .seed = count + 17});
    });
}

TEST_P(HostCollective, EveryTypeReductionAndWeight) {
  run(4, [&](Engine& engine, Collectives& collectives) {
    const std::vector<double> weights{0.5, 2, 0, 1.25};
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
      for (const Reduction reduction : {Reduction::sum, Reduction::mean})
        for (const bool weighted : {false, true})
          for (const std::size_t count : {std::size_t{333}, std::size_t{40'000}})
            for (const Trial::What what : {Trial::all_reduce, Trial::reduce_scatter, Trial::shift})
              check(engine, collectives, GetParam().engine_memory,
                    {.what = what,
                     .group = Group(everyone(4)),
                     .count = count,
                     .dtype = dtype,
                     .reduction = reduction,
                     .weights = weighted ? weights : std::vector<double>{},
                     .seed = count});
  });
}

TEST_P(HostCollective, LanesRunSideBySide) {
  run(3, [&](Engine& engine, Collectives& collectives) {
    std::vector<std::thread> threads;
    for (int lane = 0; lane < 4; ++lane)
      threads.emplace_back([&, lane] {
        Random random(5, static_cast<std::uint64_t>(lane));
        for (int i = 0; i < 30; ++i) {
          const Group group = random.below(2) == 0 ? Group({0, 1, 2}) : Group({0, 2});
          const std::size_t count = random.below(2) == 0 ? 100 : 30'000;
          const std::uint64_t seed = random.next();
          if (!group.contains(engine.rank())) continue;
          check(engine, collectives, GetParam().engine_memory,
                {.group = group, .count = count, .seed = seed, .lane = lane});
        }
      });
    for (std::thread& thread : threads) thread.join();
  });
}

TEST_P(HostCollective, RandomCallsOfRandomOverlappingGroups) {
  run(5, [&](Engine& engine, Collectives& collectives) {
    Random random(2024);
    for (int i = 0; i < 600; ++i) {
      const Trial trial = random_trial(random, 5, i % 20 == 0 ? 60'000 : 3'000);
      if (trial.group.contains(engine.rank()))
        check(engine, collectives, GetParam().engine_memory, trial);
    }
  });
}

TEST_P(HostCollective, TheSameBitsOnAllMembersAndInEveryRun) {
  run(4, [&](Engine& engine, Collectives& collectives) {
    const Group group(everyone(4));
    for (const std::size_t count : {std::size_t{1000}, std::size_t{100'003}}) {
      std::vector<float> first;
      for (int repeat = 0; repeat < 3; ++repeat) {
        Memory memory(engine, GetParam().engine_memory, count * 4);
        auto values = memory.as<float>();
        fill(values, 1, engine.rank());
        collectives.all_reduce(group, tensor_view(values));
        if (repeat == 0) first.assign(values.begin(), values.end());
        EXPECT_EQ(std::memcmp(first.data(), values.data(), count * 4), 0);
      }
      std::vector<float> all(4 * count);
      const Slice own = slice_of(all.size(), DType::f32, 4, group.index_of(engine.rank()));
      ASSERT_LE(own.count, count + 16);
      std::copy_n(first.begin(), std::min(count, own.count),
                  all.begin() + static_cast<long>(own.begin));
      collectives.all_gather(group, tensor_view(all));
      for (int member = 0; member < 4; ++member) {
        const Slice theirs = slice_of(all.size(), DType::f32, 4, member);
        EXPECT_EQ(
            std::memcmp(all.data() + theirs.begin, first.data(), std::min(count, theirs.count) * 4),
            0);
      }
    }
  });
}

TEST_P(HostCollective, MismatchedCallsAreNamed) {
  run(3, [&](Engine& engine, Collectives& collectives) {
    const Group group({0, 1, 2});
    // The root of a small broadcast waits for nobody, so it does not see what the others call.
    const auto expect_mismatch = [&](const auto& odd, const auto& even, bool odd_waits = true) {
      try {
        if (engine.rank() == 1)
          odd();
        else
          even();
        EXPECT_TRUE(engine.rank() == 1 && !odd_waits) << "no error on rank " << engine.rank();
      } catch (const CommError& error) {
        EXPECT_EQ(error.failure(), CommFailure::mismatch) << error.what();
        if (engine.rank() != 1) {
          EXPECT_EQ(error.rank(), 1) << error.what();
        }
        EXPECT_EQ(error.group(), group);
        EXPECT_EQ(error.bucket(), 3);
        EXPECT_EQ(error.step(), 11);
      }
      collectives.barrier(group);  // and the lane still works
    };
    for (const std::size_t count : {std::size_t{100}, std::size_t{50'000}}) {
      Memory memory(engine, GetParam().engine_memory, count * 4);
      TensorView data{memory.data(), count, DType::f32};
      TensorView shorter{memory.data(), count - 1, DType::f32};
      TensorView halves{memory.data(), count, DType::bf16};
      const CollectiveOptions options{.timeout = Seconds(20), .bucket = 3, .step = 11};
      CollectiveOptions sum = options;
      sum.reduction = Reduction::sum;
      const auto plain = [&] { collectives.all_reduce(group, data, options); };
      expect_mismatch([&] { collectives.all_reduce(group, shorter, options); }, plain);
      expect_mismatch([&] { collectives.all_reduce(group, halves, options); }, plain);
      expect_mismatch([&] { collectives.all_reduce(group, data, sum); }, plain);
      expect_mismatch([&] { collectives.reduce_scatter(group, data, options); }, plain);
      expect_mismatch([&] { collectives.broadcast(group, 1, data, options); },
                      [&] { collectives.broadcast(group, 1, shorter, options); }, count > 2048);
    }
  });
}

TEST_P(HostCollective, AnotherOrderIsNamed) {
  run(2, [&](Engine& engine, Collectives& collectives) {
    const Group group({0, 1});
    std::vector<float> a(100);
    std::vector<double> b(200);
    const CollectiveOptions options{.timeout = Seconds(20)};
    const auto first = [&] { collectives.all_reduce(group, tensor_view(a), options); };
    const auto second = [&] { collectives.all_gather(group, tensor_view(b), options); };
    if (engine.rank() == 0) {
      EXPECT_THROW(first(), CommError);
      EXPECT_THROW(second(), CommError);
    } else {
      EXPECT_THROW(second(), CommError);
      EXPECT_THROW(first(), CommError);
    }
    first();
  });
}

TEST_P(HostCollective, ANewEpochStartsCountingAnew) {
  run(3, [&](Engine& engine, Collectives& collectives) {
    std::vector<float> values(100, 1);
    const Group group({0, 1, 2});
    collectives.all_reduce(group, tensor_view(values));
    // Rank 2 stops one call earlier than the others, who do not get through theirs.
    if (engine.rank() != 2) {
      EXPECT_THROW(
          collectives.all_reduce(group, tensor_view(values), {.timeout = milliseconds(100)}),
          CommError);
    }
    for (std::uint32_t epoch = 1; epoch < 4; ++epoch) {
      std::fill(values.begin(), values.end(), static_cast<float>(engine.rank()));
      collectives.all_reduce(group, tensor_view(values), {.epoch = epoch});
      EXPECT_EQ(values[99], 1.0F);
    }
    EXPECT_THROW(collectives.all_reduce(group, tensor_view(values), {.epoch = 1}), UsageError);
  });
}

TEST_P(HostCollective, BadCallsAreUsageErrors) {
  run(2, [&](Engine& engine, Collectives& collectives) {
    std::vector<float> values(4);
    const Group pair({0, 1});
    EXPECT_THROW(collectives.all_reduce(Group({1 - engine.rank()}), tensor_view(values)),
                 UsageError);
    EXPECT_THROW(collectives.all_reduce(pair, tensor_view(values), {.lane = 16}), UsageError);
    EXPECT_THROW(collectives.broadcast(pair, 7, tensor_view(values)), UsageError);
    const std::vector<double> one{1};
    EXPECT_THROW(collectives.all_reduce(pair, tensor_view(values), {.weights = one}), UsageError);
  });
}

INSTANTIATE_TEST_SUITE_P(All, HostCollective,
                         testing::Values(Setting{Kind::loopback, true},
                                         Setting{Kind::loopback, false}, Setting{Kind::shm, true},
                                         Setting{Kind::shm, false}),
                         [](const auto& each) {
                           return name_of(each.param.kind) +
                                  (each.param.engine_memory ? "_engine" : "_foreign");
                         });

// The front sends groups that do not share a host, and algorithms by name, over messages.
TEST(Collectives, GoOverMessagesWhereMembersDoNotShareAHost) {
  LoopbackWorld world(std::vector<std::string>{"a", "a", "b"});
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      Collectives collectives(world.engine(rank));
      for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::ring, Algorithm::direct})
        check(world.engine(rank), collectives, false,
              {.group = Group({0, 1, 2}), .count = 1000, .seed = 3, .algorithm = algorithm});
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(HostCollectiveAlone, IsANoOpThatKeepsWeights) {
  LoopbackWorld world(1);
  Collectives collectives(world.engine(0));
  std::vector<float> values{1, 2};
  const std::vector<double> weight{3};
  collectives.all_reduce(Group({0}), tensor_view(values));
  EXPECT_EQ(values[1], 2);
  collectives.all_reduce(Group({0}), tensor_view(values),
                         {.reduction = Reduction::sum, .weights = weight});
  EXPECT_EQ(values[1], 6);
  collectives.barrier(Group({0}));
}

}  // namespace
}  // namespace riffle::test
