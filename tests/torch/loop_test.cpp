// What a training loop may do beside forward, backward, step; with two workers.
#include "loop.h"

#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>

#include "refusal.h"

namespace riffle {
namespace {

using test::Net;
using test::OptimizerPtr;
using test::Replicas;
using test::Worker;
using testing::HasSubstr;
using torch::Tensor;
using torch::nn::utils::clip_grad_norm_;

constexpr int kFew = 8;

class Loop : public testing::Test {
 protected:
  static void SetUpTestSuite() { torch::set_num_threads(1); }
  static void expect_equal(const Worker& worker, const Replicas& expected) {
    EXPECT_LT(test::distance(test::flat(worker.net), test::flat(expected.nets.at(worker.rank))),
              1e-12);
  }

  World world_ = test::flat_world(2);
  test::Loop loop_{world_};
};

TEST_F(Loop, ClipsLocallyWhereWeightsAreMixed) {
  Replicas expected(world_);
  expected.before_update = [](Net& net, torch::optim::Optimizer&, Rank, int) {
    (void)clip_grad_norm_(net->parameters(), 0.5);
  };
  expected.train("sesgd", kFew);
  for (const bool by_session : {false, true})
    loop_.run("sesgd:bucket=layer", [&](Worker& worker) {
      for (int t = 0; t < kFew; ++t) {
        worker.backward(t);
        by_session ? (void)worker.session.clip_grad_norm_(0.5)
                   : (void)clip_grad_norm_(worker.net->parameters(), 0.5);
        worker.session.step();
      }
      expect_equal(worker, expected);
    });
  ASSERT_EQ(loop_.log.size(), 2U);  // once on each rank, of torch's own
  EXPECT_THAT(loop_.log[0], HasSubstr("is changed between backward and the optimizer's step"));
}

// Also one that replaces gradients: what the loop leaves in .grad is what counts.
TEST_F(Loop, GradientsChangedByHandCount) {
  for (const char* spec : {"wfbp", "dear", "sesgd:bucket=layer"}) {
    Replicas expected(world_);
    expected.before_update = [](Net& net, torch::optim::Optimizer&, Rank, int) {
      for (Tensor& each : net->parameters())
        if (each.grad().defined()) each.mutable_grad().mul_(0.5);
    };
    expected.train(spec, kFew);
    loop_.run(spec, [&](Worker& worker) {
      for (int t = 0; t < kFew; ++t) {
        worker.backward(t);
        for (Tensor& each : worker.net->parameters())
          if (each.grad().defined()) each.mutable_grad() = each.grad() * 0.5;
        worker.session.step();
      }
      expect_equal(worker, expected);
    });
  }
}

TEST_F(Loop, ClippingThatBeginsLater) {
  // Averages are there to be clipped at any time, where nothing relies on them.
  Replicas expected(world_);
  expected.before_update = [](Net& net, torch::optim::Optimizer&, Rank, int t) {
    if (t >= 5) (void)clip_grad_norm_(net->parameters(), 0.1);
  };
  expected.train("wfbp", kFew);
  for (const bool overlap : {true, false}) {
    loop_.options.overlap = overlap;
    loop_.run(overlap ? "wfbp" : "dear", [&](Worker& worker) {
      for (int t = 0; t < kFew; ++t) {
        worker.backward(t);
        if (t >= 5) (void)clip_grad_norm_(worker.net->parameters(), 0.1);
        worker.session.step();
      }
      expect_equal(worker, expected);
    });
  }
  loop_.options.overlap = true;
  for (const char* spec : {"dear", "sesgd:bucket=layer"})
    for (const bool by_value : {true, false})
      loop_.run(spec, [&](Worker& worker) {
        for (int t = 0; t < 5; ++t) worker.step(t);
        worker.backward(5);
        if (by_value)
          torch::nn::utils::clip_grad_value_(worker.net->parameters(), 0.001);
        else
          (void)clip_grad_norm_(worker.net->parameters(), 0.1);
        EXPECT_THAT(refusal([&] { worker.session.step(); }), HasSubstr("session.clip_grad_norm_"));
      });
  EXPECT_TRUE(loop_.log.empty());
}

// Clipping that never clips is no change.
TEST_F(Loop, ClippingThatNeverClips) {
  for (const char* spec : {"dear", "sesgd:bucket=layer"}) {
    Replicas expected(world_);
    expected.train(spec, kFew);
    loop_.run(spec, [&](Worker& worker) {
      for (int t = 0; t < kFew; ++t) {
        worker.backward(t);
        (void)clip_grad_norm_(worker.net->parameters(), 1e6);
        worker.session.step();
      }
      expect_equal(worker, expected);
    });
  }
}

TEST_F(Loop, RatesMayNotChangeWhenUpdatesAreMade) {
  loop_.run("sesgd:bucket=layer", [&](Worker& worker) {
    for (int t = 0; t < 4; ++t) worker.step(t);
    worker.backward(4);
    test::set_rate(*worker.optimizer, 0.01);
    EXPECT_THAT(refusal([&] { worker.session.step(); }), HasSubstr("a learning rate was changed"));
  });
}

// As under DDP: gradients of both backwards are averaged.
TEST_F(Loop, TwoBackwardsAccumulate) {
  Replicas expected(world_);
  expected.backward = [](Net& net, torch::optim::Optimizer&, Rank rank, int t) {
    for (int part = 0; part < 2; ++part) test::loss_of(net, rank, 2 * t + part).backward();
  };
  expected.train("wfbp", kFew);
  loop_.options.overlap = false;  // for dear
  for (const char* spec : {"wfbp", "mg-wfbp", "dear"})
    loop_.run(spec, [&](Worker& worker) {
      for (int t = 0; t < kFew; ++t) {
        worker.backward(2 * t);
        test::loss_of(worker.net, worker.rank, 2 * t + 1).backward();
        worker.session.step();
      }
      expect_equal(worker, expected);
    });
}

TEST_F(Loop, NoSyncInNoSync) {
  Replicas expected(world_);
  expected.backward = [](Net& net, torch::optim::Optimizer&, Rank rank, int t) {
    for (int part = 0; part < 3; ++part) test::loss_of(net, rank, 3 * t + part).backward();
  };
  expected.train("dear", kFew);
  loop_.run("dear", [&](Worker& worker) {
    for (int t = 0; t < kFew; ++t) {
      worker.optimizer->zero_grad();
      for (int part = 0; part < 3; ++part) {
        std::optional<TorchSession::NoSync> outer;
        if (part < 2) outer.emplace(worker.session.session());
        if (part == 0) (void)worker.session.no_sync();
        test::loss_of(worker.net, worker.rank, 3 * t + part).backward();
      }
      worker.session.step();
    }
    expect_equal(worker, expected);
  });
}

TEST_F(Loop, ThawedParametersAreRefused) {
  loop_.run("wfbp", [&](Worker& worker) {
    worker.step(0);
    worker.net->frozen.set_requires_grad(true);
    worker.optimizer->add_param_group(
        torch::optim::OptimizerParamGroup(std::vector<Tensor>{worker.net->frozen}));
    worker.backward(1);
    worker.net->frozen.mutable_grad() = torch::ones_like(worker.net->frozen);
    EXPECT_THAT(refusal([&] { worker.session.step(); }), HasSubstr("was frozen"));
  });
}

TEST_F(Loop, AForgottenStepIsRefusedWhereItMatters) {
  for (const char* spec : {"dear", "sesgd:bucket=layer"})
    loop_.run(spec, [&](Worker& worker) {
      for (int t = 0; t < 4; ++t) worker.step(t);
      worker.backward(4);
      const Tensor loss = test::loss_of(worker.net, worker.rank, 5);
      EXPECT_THAT(refusal([&] { loss.backward(); }), HasSubstr("no_sync()"));
    });
}

// One worker leaves out an update (an overflow of its own); mixing goes on.
TEST_F(Loop, SkippedSteps) {
  Replicas expected(world_);
  expected.before_update = [](Net& net, torch::optim::Optimizer& optimizer, Rank rank, int t) {
    if (rank == 1 && t % 3 == 2) optimizer.zero_grad();
    (void)net;
  };
  expected.train("sesgd", kFew);
  loop_.options.overlap = false;
  loop_.run("sesgd:bucket=layer", [&](Worker& worker) {
    for (int t = 0; t < kFew; ++t) {
      worker.backward(t);
      if (worker.rank == 1 && t % 3 == 2)
        worker.session.skip_step();
      else
        worker.session.step();
    }
    expect_equal(worker, expected);
  });
}

TEST_F(Loop, WeightAverageOverStepsAndWorkers) {
  constexpr int kFrom = 3;
  for (const char* spec : {"wfbp", "dear", "sesgd"}) {
    Tensor sum = torch::zeros({}, torch::kFloat64);
    for (int t = 0; t < kFew; ++t) {
      Replicas expected(world_);  // from the start: states in between are not to be had
      expected.train(spec, t + 1);
      for (const Net& net : expected.nets)
        if (t >= kFrom) sum = sum + net->first->weight.detach();
    }
    const Tensor mean = sum / (2 * (kFew - kFrom));
    loop_.options.swa = true;
    loop_.options.swa_from = kFrom;
    loop_.run([&](Rank rank) {
      Net net = test::make_net(static_cast<std::uint64_t>(rank + 1));
      OptimizerPtr optimizer = test::make_sgd(net);
      std::vector<std::byte> saved;
      for (const auto& [begin, end] : {std::pair(0, 5), std::pair(5, kFew)}) {
        TorchSession session = loop_.attached(rank, spec, net, *optimizer, saved);
        if (begin == 0) {
          EXPECT_THAT(refusal([&] { (void)session.swa(); }),
                      HasSubstr("no step has been averaged"));
        }
        for (int t = begin; t < end; ++t) {
          optimizer->zero_grad();
          test::loss_of(net, rank, t).backward();
          session.step();
        }
        saved = session.save();
        if (end != kFew) continue;
        const NamedTensors average = session.swa();
        EXPECT_EQ(average.at(0).first, "first.weight");
        EXPECT_LT(test::distance(average.at(0).second, mean), 1e-12) << spec;
      }
      saved.resize(20);
      EXPECT_THAT(refusal([&] { (void)loop_.attached(rank, spec, net, *optimizer, saved); }),
                  HasSubstr("not what TorchSession::save() gave"));
    });
  }
}

TEST_F(Loop, WeightsOutliveTheSession) {
  for (const char* spec : {"wfbp", "dear", "sesgd"})
    loop_.run([&](Rank rank) {
      Net net = test::make_net(1);
      OptimizerPtr optimizer = test::make_sgd(net);
      Tensor inside;
      NamedTensors average;
      {
        TorchSession session = loop_.attached(rank, spec, net, *optimizer);
        test::loss_of(net, rank, 0).backward();
        session.step();
        inside = test::flat(net).clone();
        average = session.averaged();
        session.finish();
      }
      EXPECT_TRUE(torch::equal(net->first->weight.detach(), average.at(0).second));
      EXPECT_LT(test::distance(average.at(0).second, net->first->weight.detach()), 1e-15);
      optimizer->zero_grad();
      test::loss_of(net, rank, 1).backward();  // no hook is left
      optimizer->step();
    });
}

TEST_F(Loop, RefusesWithTheReason) {
  const auto attach_to = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    LoopbackWorld alone(1);
    (void)attach(alone.engine(0), "bsp", model, optimizer);
  };
  Net net = test::make_net(1);
  torch::optim::LBFGS closure(net->parameters());
  EXPECT_THAT(refusal([&] { attach_to(*net, closure); }), HasSubstr("L-BFGS"));

  Net other = test::make_net(2);
  OptimizerPtr foreign = test::make_sgd(other);
  EXPECT_THAT(refusal([&] { attach_to(*net, *foreign); }), HasSubstr("the model does not train"));

  torch::nn::Embedding sparse(torch::nn::EmbeddingOptions(5, 4).sparse(true));
  torch::optim::SGD sgd(sparse->parameters(), 0.1);
  LoopbackWorld alone(1);
  TorchSession session = attach(alone.engine(0), "bsp", *sparse, sgd);
  EXPECT_THAT(refusal([&] { sparse->forward(torch::zeros({2}, torch::kLong)).sum().backward(); }),
              HasSubstr("weight: has a sparse gradient"));
  EXPECT_THAT(refusal([&] { (void)session.swa(); }), HasSubstr("TorchOptions::swa"));

  loop_.run("sesgd", [&](Worker& worker) {
    worker.backward(0);
    worker.net->first->weight.set_data(worker.net->first->weight.detach().clone());
    EXPECT_THAT(refusal([&] { worker.session.step(); }), HasSubstr("first.weight: was moved"));
  });
}

}  // namespace
}  // namespace riffle
