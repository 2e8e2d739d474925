// A training loop on workers that are threads, for tests.
#pragma once

#include <mutex>

#include "replicas.h"
#include "riffle/torch.h"
#include "support/ranks.h"

namespace riffle::test {

inline World flat_world(int n) {
  return World(parse_cluster("flat:" + std::to_string(n) + ",latency=50us,bandwidth=10Gbps"));
}

struct Worker {
  Rank rank;
  Net net;
  OptimizerPtr optimizer;
  TorchSession session;

  void backward(int t) {
    optimizer->zero_grad();
    loss_of(net, rank, t, [&](torch::nn::Module& module) {
      session.wait_before_forward(module);
    }).backward();
  }
  void step(int t) {
    backward(t);
    session.step();
  }
};
using LoopBody = std::function<void(Worker&)>;

// Sessions that run one after the other share the collectives of their engine.
class Loop {
 public:
  explicit Loop(const World& world) : engines_(world.size()) {
    options.session.cluster = world.cluster;
    options.session.timeout = Seconds(60);
    options.log = [this](const std::string& line) {
      const std::scoped_lock lock(mutex_);
      log.push_back(line);
    };
    for (Rank rank = 0; rank < world.size(); ++rank)
      collectives_.push_back(std::make_unique<Collectives>(engines_.engine(rank)));
  }

  // Every worker starts from another model.
  void run(const std::string& strategy, const LoopBody& body) {
    run_ranks(engines_, [&](Rank rank) {
      Net net = make_net(static_cast<std::uint64_t>(rank + 1));
      OptimizerPtr optimizer = make_optimizer(net);
      torch::optim::Optimizer& with = *optimizer;
      Worker worker{rank, net, std::move(optimizer), attached(rank, strategy, net, with)};
      body(worker);
    });
  }
  // Calls body(rank) for each.
  void run(const std::function<void(Rank)>& body) { run_ranks(engines_, body); }

  TorchSession attached(Rank rank, const std::string& strategy, Net& net,
                        torch::optim::Optimizer& optimizer,
                        std::span<const std::byte> resume = {}) {
    TorchOptions own = options;
    own.session.collectives = collectives_.at(rank).get();
    own.session.resume = resume;
    return attach(engines_.engine(rank), strategy, *net, optimizer, own);
  }

  TorchOptions options;
  Replicas::MakeOptimizer make_optimizer = make_sgd;
  std::vector<std::string> log;

 private:
  LoopbackWorld engines_;
  std::vector<std::unique_ptr<Collectives>> collectives_;
  std::mutex mutex_;
};

}  // namespace riffle::test
