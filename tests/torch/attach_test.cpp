// Every strategy through libtorch hooks, against plain libtorch replicas in one loop; always before
// finish(), which would make workers equal that are not.
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/nn/utils/convert_parameters.h>

#include <atomic>

#include "loop.h"

namespace riffle {
namespace {

using test::Net;
using test::Replicas;
using torch::Tensor;

// Every strategy of the table, and options that change what happens when.
std::vector<std::string> specs(bool only_exact) {
  const StrategyTable table = StrategyTable::builtin();
  std::vector<std::string> all;
  const World world(parse_cluster("flat:4,latency=20us,bandwidth=10Gbps"));
  // What depends on clocks has no replica, and factors are compared with torch's own elsewhere.
  for (const StrategyInfo& info : table.all())
    if ((info.exact || !only_exact) && !table.make(info.name)->traits(world).timed &&
        info.name != "powersgd")
      all.push_back(info.name);
  all.insert(all.end(), {"dear:bucket=500B", "ddp:bucket=900B,first=100B"});
  if (!only_exact)
    all.insert(all.end(), {"sesgd:bucket=layer", "sesgd:bucket=layer,mix_state=true",
                           "sesgd:order=combine-then-adapt", "local-sgd:tau=3", "diloco:tau=5",
                           "dasgd:tau=3,delay=3", "dasgd:merge=mix", "ssp:staleness=0"});
  return all;
}

std::string name_of(const testing::TestParamInfo<std::string>& each) {
  std::string name = each.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

void expect_same_bits(test::Worker& worker) {
  Tensor first = torch::nn::utils::parameters_to_vector(worker.net->parameters()).detach();
  const Tensor own = first.clone();
  worker.session.session().broadcast(std::as_writable_bytes(
      std::span(first.data_ptr<double>(), static_cast<std::size_t>(first.numel()))));
  EXPECT_TRUE(torch::equal(own, first)) << "another bit than rank 0 has";
}

class Attach : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { torch::set_num_threads(1); }

  // Runs workers and compares each with its replica at the end, bit by bit among themselves where
  // the strategy is exact.
  static void compare(const Replicas& expected, const World& world,
                      const Replicas::MakeOptimizer& make, const test::LoopBody& body,
                      bool lazy = false) {
    const bool exact = StrategyTable::builtin().make(GetParam())->traits(world).exact;
    test::Loop loop(world);
    loop.make_optimizer = make;
    loop.options.lazy_forward = lazy;
    loop.run(GetParam(), [&](test::Worker& worker) {
      body(worker);
      const Tensor now = test::flat(worker.net);
      EXPECT_LT(test::distance(now, test::flat(expected.nets.at(worker.rank))), 1e-10)
          << GetParam() << " of " << world.size() << ", rank " << worker.rank;
      if (exact) expect_same_bits(worker);
    });
  }
};

TEST_P(Attach, EqualsPlainReplicas) {
  constexpr int kSteps = 44;
  const bool mixes_state = GetParam().find("mix_state") != std::string::npos;
  for (const int n : {3, 4}) {
    const World world = test::flat_world(n);
    const Replicas::MakeOptimizer make = n == 4 || mixes_state ? test::make_sgd : test::make_adamw;
    Replicas expected(world, make);
    expected.train(GetParam(), kSteps);
    compare(expected, world, make, [&](test::Worker& worker) {
      for (int t = 0; t < kSteps; ++t) worker.step(t);
      EXPECT_EQ(worker.session.stats().steps, kSteps);
    });
  }
}

// The rate of a step is the one that was set when its step() was called, also where the update is
// made later.
TEST_P(Attach, FollowsALearningRateSchedule) {
  constexpr int kSteps = 10;
  const auto rate = [](int t) { return 0.1 / (1 + t); };
  const World world = test::flat_world(2);
  Replicas expected(world);
  expected.backward = [&](Net& net, torch::optim::Optimizer& optimizer, Rank rank, int t) {
    test::set_rate(optimizer, rate(t));
    test::loss_of(net, rank, t).backward();
  };
  expected.train(GetParam(), kSteps);
  for (const bool lazy : {false, true})
    compare(
        expected, world, test::make_sgd,
        [&](test::Worker& worker) {
          test::set_rate(*worker.optimizer, rate(0));
          for (int t = 0; t < kSteps; ++t) {
            worker.step(t);
            test::set_rate(*worker.optimizer, rate(t + 1));  // as a scheduler does
          }
          if (lazy) worker.session.wait_before_forward(*worker.net);
        },
        lazy);
}

INSTANTIATE_TEST_SUITE_P(Strategies, Attach, testing::ValuesIn(specs(false)), name_of);

// What factors give is compared with torch's own hook in tests/python/powersgd_test.py; here: that
// they are made of libtorch's shapes, and are the same on all workers.
TEST(Factors, SendLessAndKeepWorkersTogether) {
  constexpr int kSteps = 12;
  const auto sent = [&](const std::string& spec) {
    std::atomic<std::int64_t> bytes = 0;
    test::Loop loop(test::flat_world(3));
    loop.run(spec, [&](test::Worker& worker) {
      for (int t = 0; t < kSteps; ++t) worker.step(t);
      expect_same_bits(worker);
      if (worker.rank == 0) bytes = worker.session.stats().bytes.count;
    });
    return bytes.load();
  };
  // Shares of a byte are cut off for each bucket, and buckets follow measured times.
  constexpr std::int64_t kCut = 16;
  const std::int64_t whole = sent("powersgd:start=1000");
  EXPECT_NEAR(static_cast<double>(whole), static_cast<double>(sent("bsp")), kCut);
  EXPECT_LT(sent("powersgd:rank=1,start=0"), whole - kCut);
}

class Exact : public Attach {};

// As under DDP: the loop clips the averaged gradient.
TEST_P(Exact, ClippingByTorchClipsTheAverage) {
  constexpr int kSteps = 12;
  const World world = test::flat_world(3);
  std::vector<double> norms;
  Replicas expected(world);
  expected.before_update = [&](Net& net, torch::optim::Optimizer&, Rank rank, int) {
    const double norm = torch::nn::utils::clip_grad_norm_(net->parameters(), 0.3);
    if (rank == 0) norms.push_back(norm);
  };
  expected.train(GetParam(), kSteps);
  compare(expected, world, test::make_sgd, [&](test::Worker& worker) {
    for (int t = 0; t < kSteps; ++t) {
      worker.backward(t);
      const double norm = torch::nn::utils::clip_grad_norm_(worker.net->parameters(), 0.3);
      EXPECT_NEAR(norm, norms.at(t), 1e-10);
      EXPECT_GT(norm, 0.3);
      worker.session.step();
    }
  });
}

// The session's own clipping, with accumulation before it, from the first step or a later one.
TEST_P(Exact, ClippingByTheSessionClipsTheAverage) {
  constexpr int kSteps = 8;
  const World world = test::flat_world(3);
  for (const int from : {0, 4}) {
    Replicas expected(world);
    expected.backward = [](Net& net, torch::optim::Optimizer&, Rank rank, int t) {
      for (int part = 0; part < 3; ++part) test::loss_of(net, rank, 3 * t + part).backward();
    };
    expected.before_update = [&](Net& net, torch::optim::Optimizer&, Rank, int t) {
      if (t >= from) (void)torch::nn::utils::clip_grad_norm_(net->parameters(), 0.5);
    };
    expected.train(GetParam(), kSteps);
    compare(expected, world, test::make_sgd, [&](test::Worker& worker) {
      for (int t = 0; t < kSteps; ++t) {
        worker.optimizer->zero_grad(t % 2 == 0);
        {
          const auto guard = worker.session.no_sync();
          for (int part = 0; part < 2; ++part)
            test::loss_of(worker.net, worker.rank, 3 * t + part).backward();
        }
        test::loss_of(worker.net, worker.rank, 3 * t + 2).backward();
        if (t >= from) {
          EXPECT_GT(worker.session.clip_grad_norm_(0.5), 0.5);
        }
        worker.session.step();
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, Exact, testing::ValuesIn(specs(true)), name_of);

}  // namespace
}  // namespace riffle
