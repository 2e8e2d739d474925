// Training libtorch models through a session, against plain libtorch replicas in one loop.
#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <array>
#include <memory>
#include <mutex>

#include "refusal.h"
#include "riffle/random.h"
#include "riffle/torch.h"
#include "support/ranks.h"

namespace riffle {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

struct NetImpl : nn::Module {
  nn::Linear first{nullptr};
  nn::BatchNorm1d norm{nullptr};
  nn::Linear second{nullptr};
  nn::Linear unused{nullptr};
  nn::Linear last{nullptr};

  NetImpl() {
    first = register_module("first", nn::Linear(6, 16));
    norm = register_module("norm", nn::BatchNorm1d(16));
    second = register_module("second", nn::Linear(16, 16));
    unused = register_module("unused", nn::Linear(3, 3));
    last = register_module("last", nn::Linear(16, 1));
    to(torch::kFloat64);
  }
  Tensor forward(const Tensor& x, const std::function<void(nn::Module&)>& before = {}) {
    if (before) before(*first);
    Tensor y = torch::tanh(norm->forward(first->forward(x)));
    if (before) before(*second);
    y = torch::tanh(second->forward(y));
    if (before) before(*last);
    return last->forward(y);
  }
};
TORCH_MODULE(Net);

// Weights of our own, so that threads do not share torch's generator.
Net make_net(std::uint64_t seed) {
  const torch::NoGradGuard guard;
  Net net;
  Random random(seed);
  for (Tensor& tensor : net->parameters())
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      tensor.view(-1)[i] = random.uniform(-0.5, 0.5);
  return net;
}

Tensor loss_of(Net& net, Rank rank, int step, const std::function<void(nn::Module&)>& before = {}) {
  Random random(99, static_cast<std::uint64_t>(rank * 1000 + step));
  Tensor x = torch::empty({5, 6}, torch::kFloat64);
  Tensor y = torch::empty({5, 1}, torch::kFloat64);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.view(-1)[i] = random.normal();
  for (std::int64_t i = 0; i < y.numel(); ++i) y.view(-1)[i] = random.normal();
  return (net->forward(x, before) - y).pow(2).mean();
}

using OptimizerPtr = std::unique_ptr<torch::optim::Optimizer>;
OptimizerPtr make_optimizer(Net& net, bool adamw) {
  if (adamw)
    return std::make_unique<torch::optim::AdamW>(net->parameters(),
                                                 torch::optim::AdamWOptions(0.01));
  return std::make_unique<torch::optim::SGD>(
      net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(1e-3));
}

Tensor flat(const Net& net) {
  std::vector<Tensor> all;
  for (const Tensor& tensor : net->parameters()) all.push_back(tensor.detach().reshape(-1));
  return torch::cat(all);
}

double distance(const Tensor& a, const Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

enum class Rule { exact, after_step, under_step };

struct Replicas {
  std::vector<Net> nets;
  std::vector<OptimizerPtr> optimizers;

  Replicas(int n, bool adamw) {
    for (int i = 0; i < n; ++i) {
      nets.push_back(make_net(1));
      optimizers.push_back(make_optimizer(nets.back(), adamw));
    }
  }
  void backward(int step) {
    for (std::size_t i = 0; i < nets.size(); ++i) {
      optimizers[i]->zero_grad();
      loss_of(nets[i], static_cast<Rank>(i), step).backward();
    }
  }
  void average_gradients() {
    for (std::size_t p = 0; p < nets[0]->parameters().size(); ++p) {
      if (!nets[0]->parameters()[p].grad().defined()) continue;
      Tensor sum = torch::zeros_like(nets[0]->parameters()[p]);
      for (Net& net : nets) sum += net->parameters()[p].grad();
      for (Net& net : nets)
        net->parameters()[p].mutable_grad() = sum / static_cast<double>(nets.size());
    }
  }
  // Parameters and float buffers become the means of their groups.
  void mix(const Partition& groups, bool buffers) {
    const torch::NoGradGuard guard;
    const auto tensors = [&](Net& net) {
      std::vector<Tensor> all = net->parameters();
      for (const Tensor& each : net->buffers())
        if (buffers && each.is_floating_point()) all.push_back(each);
      return all;
    };
    for (const Group& group : groups)
      for (std::size_t t = 0; t < tensors(nets[0]).size(); ++t) {
        Tensor sum = torch::zeros_like(tensors(nets[0])[t]);
        for (const Rank rank : group) sum += tensors(nets[static_cast<std::size_t>(rank)])[t];
        for (const Rank rank : group)
          tensors(nets[static_cast<std::size_t>(rank)])[t].copy_(sum / group.size());
      }
  }
};

Partition groups_at(const std::string& spec, const World& world, Step step) {
  Trace trace;
  trace.layers.push_back({"all", 1, Seconds(1), Seconds(1)});
  Partition groups;
  for (const Exchange& each :
       StrategyTable::builtin().make(spec)->program(step, world, one_bucket(trace)).exchanges)
    if (each.payload == Payload::weight) groups.push_back(each.group);
  return groups;
}

Replicas reference(const std::string& spec, Rule rule, const World& world, int steps, bool adamw) {
  Replicas all(world.size(), adamw);
  Partition before;
  for (int t = 0; t < steps; ++t) {
    all.backward(t);
    if (rule == Rule::exact) all.average_gradients();
    if (rule == Rule::under_step) all.mix(before, false);
    for (OptimizerPtr& optimizer : all.optimizers) optimizer->step();
    if (rule == Rule::after_step) all.mix(groups_at(spec, world, t), true);
    if (rule == Rule::under_step) before = groups_at(spec, world, t);
  }
  return all;
}

TorchOptions options_for(const World& world) {
  TorchOptions options;
  options.session.cluster = world.cluster;
  options.session.timeout = Seconds(60);
  return options;
}

struct Case {
  std::string spec;
  Rule rule;
};

class Attach : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { torch::set_num_threads(1); }
};

TEST_P(Attach, EqualsPlainReplicas) {
  constexpr int kSteps = 50;
  const auto& [spec, rule] = GetParam();
  for (const bool adamw : {false, true})
    for (const int n : {2, 3, 4}) {
      const World world(
          parse_cluster("flat:" + std::to_string(n) + ",latency=50us,bandwidth=10Gbps"));
      const Replicas expected = reference(spec, rule, world, kSteps, adamw);
      LoopbackWorld loopback(n);
      std::mutex mutex;
      std::vector<Tensor> results(static_cast<std::size_t>(n));
      test::run_ranks(loopback, [&](Rank rank) {
        Net net = make_net(static_cast<std::uint64_t>(rank + 1));
        OptimizerPtr optimizer = make_optimizer(net, adamw);
        {
          TorchSession session =
              attach(loopback.engine(rank), spec, *net, *optimizer, options_for(world));
          for (int t = 0; t < kSteps; ++t) {
            optimizer->zero_grad();
            loss_of(net, rank, t).backward();
            session.step();
          }
          EXPECT_EQ(session.stats().steps, kSteps);
        }
        const std::scoped_lock lock(mutex);
        results[static_cast<std::size_t>(rank)] = flat(net);
        EXPECT_LT(distance(flat(net), flat(expected.nets[static_cast<std::size_t>(rank)])), 1e-10)
            << spec << " of " << n << (adamw ? " AdamW" : " SGD") << ", rank " << rank;
      });
      if (rule != Rule::exact) continue;
      for (const Tensor& each : results) EXPECT_TRUE(torch::equal(each, results[0])) << spec;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, Attach,
    testing::Values(Case{"bsp", Rule::exact}, Case{"wfbp", Rule::exact},
                    Case{"mg-wfbp", Rule::exact}, Case{"asc-wfbp", Rule::exact},
                    Case{"dear:bucket=500B", Rule::exact}, Case{"sesgd", Rule::after_step},
                    Case{"sesgd:bucket=layer", Rule::after_step}, Case{"ds-sync", Rule::after_step},
                    Case{"sesgd:order=combine-then-adapt", Rule::under_step},
                    Case{"local-sgd:tau=3", Rule::after_step}),
    [](const auto& each) { return std::to_string(each.index); });

// The rest with two workers.
class Loop : public testing::Test {
 protected:
  static void SetUpTestSuite() { torch::set_num_threads(1); }
  using Body = std::function<void(Rank, Net&, torch::optim::Optimizer&, TorchSession&)>;
  void run(const std::string& spec, const Body& body, bool lazy = false) {
    test::run_ranks(world_, [&](Rank rank) {
      Net net = make_net(static_cast<std::uint64_t>(rank + 1));
      OptimizerPtr optimizer = make_optimizer(net, false);
      TorchOptions options = options_here(rank);
      options.lazy_forward = lazy;
      options.log = [&](const std::string& line) {
        const std::scoped_lock lock(mutex_);
        log_.push_back(line);
      };
      TorchSession session = attach(world_.engine(rank), spec, *net, *optimizer, options);
      body(rank, net, *optimizer, session);
    });
  }

  // Several sessions, one after the other, share the collectives of their engine.
  TorchOptions options_here(Rank rank) {
    TorchOptions options = options_for(cluster_);
    options.session.collectives = &collectives_[static_cast<std::size_t>(rank)];
    return options;
  }

  LoopbackWorld world_{2};
  std::array<Collectives, 2> collectives_{Collectives(world_.engine(0)),
                                          Collectives(world_.engine(1))};
  World cluster_{parse_cluster("flat:2,latency=50us,bandwidth=10Gbps")};
  std::mutex mutex_;
  std::vector<std::string> log_;
};

constexpr int kFew = 8;

TEST_F(Loop, LazyForwardGivesTheSame) {
  const Replicas expected = reference("dear", Rule::exact, cluster_, kFew, false);
  run(
      "dear:bucket=500B",
      [&](Rank rank, Net& net, torch::optim::Optimizer& optimizer, TorchSession& session) {
        for (int t = 0; t < kFew; ++t) {
          optimizer.zero_grad(t % 2 == 0);
          loss_of(net, rank, t, [&](nn::Module& module) { session.needed(module); }).backward();
          session.step();
        }
        session.finish();
        EXPECT_LT(distance(flat(net), flat(expected.nets[0])), 1e-12);
      },
      true);
}

TEST_F(Loop, AccumulationClippingAndFinish) {
  Replicas expected(2, false);
  for (int t = 0; t < kFew; ++t) {
    for (std::size_t i = 0; i < 2; ++i) {
      expected.optimizers[i]->zero_grad();
      for (int part = 0; part < 3; ++part)
        loss_of(expected.nets[i], static_cast<Rank>(i), 3 * t + part).backward();
    }
    expected.average_gradients();
    for (std::size_t i = 0; i < 2; ++i) {
      (void)nn::utils::clip_grad_norm_(expected.nets[i]->parameters(), 0.5);
      expected.optimizers[i]->step();
    }
  }
  for (const char* spec : {"wfbp", "dear"})
    run(spec, [&](Rank rank, Net& net, torch::optim::Optimizer& optimizer, TorchSession& session) {
      for (int t = 0; t < kFew; ++t) {
        optimizer.zero_grad();
        {
          const auto guard = session.no_sync();
          for (int part = 0; part < 2; ++part) loss_of(net, rank, 3 * t + part).backward();
        }
        loss_of(net, rank, 3 * t + 2).backward();
        EXPECT_GT(session.clip_grad_norm_(0.5), 0.5);
        session.step();
      }
      session.finish();
      EXPECT_LT(distance(flat(net), flat(expected.nets[0])), 1e-10) << spec;
      // Buffers are averages now.
      double mean = net->norm->running_mean[3].item<double>();
      const double own = mean;
      session.session().average(std::span(&mean, 1));
      EXPECT_NEAR(mean, own, 1e-15);
    });
}

TEST_F(Loop, ClipsLocallyWhereWeightsAreMixed) {
  Replicas expected(2, false);
  for (int t = 0; t < kFew; ++t) {
    expected.backward(t);
    for (std::size_t i = 0; i < 2; ++i) {
      (void)nn::utils::clip_grad_norm_(expected.nets[i]->parameters(), 0.5);
      expected.optimizers[i]->step();
    }
    expected.mix({{0, 1}}, true);
  }
  run("sesgd:bucket=layer",
      [&](Rank rank, Net& net, torch::optim::Optimizer& optimizer, TorchSession& session) {
        for (int t = 0; t < kFew; ++t) {
          optimizer.zero_grad();
          loss_of(net, rank, t).backward();
          (void)session.clip_grad_norm_(0.5);
          session.step();
        }
        EXPECT_LT(distance(flat(net), flat(expected.nets[0])), 1e-12);
        EXPECT_EQ(session.consensus_distance(), 0);
      });
}

TEST_F(Loop, GradientsChangedByHandAreNoticed) {
  Replicas expected(2, false);
  for (int t = 0; t < kFew; ++t) {
    expected.backward(t);
    for (std::size_t i = 0; i < 2; ++i) {
      for (Tensor& each : expected.nets[i]->parameters())
        if (each.grad().defined()) each.mutable_grad().mul_(0.5);
      expected.optimizers[i]->step();
    }
    expected.mix({{0, 1}}, true);
  }
  run("sesgd:bucket=layer",
      [&](Rank rank, Net& net, torch::optim::Optimizer& optimizer, TorchSession& session) {
        for (int t = 0; t < kFew; ++t) {
          optimizer.zero_grad();
          loss_of(net, rank, t).backward();
          for (Tensor& each : net->parameters())
            if (each.grad().defined()) each.mutable_grad().mul_(0.5);
          session.step();
        }
        EXPECT_LT(distance(flat(net), flat(expected.nets[0])), 1e-12);
      });
  ASSERT_EQ(log_.size(), 2U);  // once on each rank
  EXPECT_THAT(log_[0], testing::HasSubstr("changed between backward and step"));
}

TEST_F(Loop, ChangedTooLateIsRefused) {
  run("wfbp", [&](Rank rank, Net& net, torch::optim::Optimizer& optimizer, TorchSession& session) {
    for (int t = 0; t < 2; ++t) {
      optimizer.zero_grad();
      loss_of(net, rank, t).backward();
      if (t == 0) {
        session.step();
        continue;
      }
      net->first->weight.mutable_grad().mul_(0.5);
      EXPECT_THAT(refusal([&] { session.step(); }),
                  testing::HasSubstr("first.weight was changed after backward"));
    }
  });
}

TEST_F(Loop, WeightsOutliveTheSession) {
  for (const char* spec : {"wfbp", "sesgd"})
    test::run_ranks(world_, [&](Rank rank) {
      Net net = make_net(1);
      OptimizerPtr optimizer = make_optimizer(net, false);
      Tensor inside;
      std::vector<std::pair<std::string, Tensor>> average;
      {
        TorchSession session =
            attach(world_.engine(rank), spec, *net, *optimizer, options_here(rank));
        loss_of(net, rank, 0).backward();
        session.step();
        inside = flat(net).clone();
        average = session.averaged();
      }
      EXPECT_TRUE(torch::equal(inside, flat(net)));
      EXPECT_EQ(average.size(), net->parameters().size() + net->buffers().size());
      EXPECT_LT(distance(average[0].second, net->first->weight.detach()), 1e-15);
      optimizer->zero_grad();
      loss_of(net, rank, 1).backward();  // no hook is left
      optimizer->step();
    });
}

TEST_F(Loop, RefusesWithTheReason) {
  const auto attach_to = [&](nn::Module& model, torch::optim::Optimizer& optimizer) {
    LoopbackWorld alone(1);
    (void)attach(alone.engine(0), "bsp", model, optimizer);
  };
  Net net = make_net(1);
  torch::optim::LBFGS closure(net->parameters());
  EXPECT_THAT(refusal([&] { attach_to(*net, closure); }), testing::HasSubstr("L-BFGS"));

  Net other = make_net(2);
  OptimizerPtr foreign = make_optimizer(other, false);
  EXPECT_THAT(refusal([&] { attach_to(*net, *foreign); }),
              testing::HasSubstr("the model does not train"));

  nn::Embedding sparse(nn::EmbeddingOptions(5, 4).sparse(true));
  torch::optim::SGD sgd(sparse->parameters(), 0.1);
  LoopbackWorld alone(1);
  TorchSession session = attach(alone.engine(0), "bsp", *sparse, sgd);
  EXPECT_THAT(refusal([&] { sparse->forward(torch::zeros({2}, torch::kLong)).sum().backward(); }),
              testing::HasSubstr("weight: has a sparse gradient"));
}

}  // namespace
}  // namespace riffle
