// What training should give: plain libtorch replicas in one loop, which follow a strategy's
// programs by the words of program.h. Nothing of the runtime is used.
#pragma once

#include <torch/nn.h>
#include <torch/optim.h>

#include <functional>
#include <memory>

#include "riffle/strategy.h"

namespace riffle::test {

// With BatchNorm, a module that nobody uses, a frozen parameter and integers.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(std::int64_t seed);
  torch::Tensor forward(const torch::Tensor& x,
                        const std::function<void(torch::nn::Module&)>& before);

  torch::nn::Linear first{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear second{nullptr};
  torch::nn::Linear unused{nullptr};
  torch::nn::Linear last{nullptr};
  torch::Tensor frozen;
  torch::Tensor integers;
};
TORCH_MODULE(Net);

// Every seed gives other weights, frozen ones and integers too. Does not use torch's generator,
// which threads would share.
Net make_net(std::uint64_t seed);
// On data of its own for each rank and step; `before` is called with each module that is used.
torch::Tensor loss_of(Net& net, Rank rank, int step,
                      const std::function<void(torch::nn::Module&)>& before = {});

using OptimizerPtr = std::unique_ptr<torch::optim::Optimizer>;
OptimizerPtr make_sgd(Net& net);  // with momentum and weight decay
OptimizerPtr make_adamw(Net& net);
void set_rate(torch::optim::Optimizer& optimizer, double rate);

// All parameters and buffers, frozen ones and integers too.
torch::Tensor flat(const Net& net);
double distance(const torch::Tensor& a, const torch::Tensor& b);

class Replicas {
 public:
  using MakeOptimizer = std::function<OptimizerPtr(Net&)>;
  explicit Replicas(const World& world, const MakeOptimizer& make = make_sgd);

  // Called for each rank in each step: makes its gradients; and after gradients were averaged,
  // before the update.
  using InLoop = std::function<void(Net&, torch::optim::Optimizer&, Rank, int step)>;
  InLoop backward = [](Net& net, torch::optim::Optimizer&, Rank rank, int step) {
    loss_of(net, rank, step).backward();
  };
  InLoop before_update = {};
  void train(const std::string& strategy, int steps);

  std::vector<Net> nets;
  std::vector<OptimizerPtr> optimizers;

 private:
  struct Flight {
    Step step;
    Exchange exchange;
    std::vector<torch::Tensor> snapshots;  // by rank
  };
  [[nodiscard]] std::vector<torch::Tensor> tensors(Rank rank, Payload payload);
  [[nodiscard]] torch::Tensor gather(Rank rank, Payload payload);
  void scatter(Rank rank, Payload payload, const torch::Tensor& values);
  void average_gradients();
  void take(const Program& program, Step step, Start start);
  void merge(Step step, DuePoint due);
  void merge(const Flight& flight);

  World world_;
  std::vector<Flight> flights_;
  std::vector<torch::Tensor> agreed_;  // of an outer optimizer, by rank
  std::vector<torch::Tensor> momentum_;
};

}  // namespace riffle::test
