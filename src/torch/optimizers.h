// The user's optimizers, stepped for some parameters only.
#pragma once

#include <torch/optim/optimizer.h>

#include <unordered_map>

#include "riffle/collective.h"

namespace riffle::adapter {

// The options of all parameter groups at some moment.
using Hyperparameters = std::vector<std::vector<std::unique_ptr<torch::optim::OptimizerOptions>>>;

class Optimizers {
 public:
  // UsageError for an optimizer that needs a closure, and for a parameter that is trained and not
  // among `parameters`.
  Optimizers(std::vector<torch::optim::Optimizer*> optimizers,
             const std::vector<at::Tensor>& parameters);

  // One step of all optimizers for these parameters (by index), with the hyperparameters of another
  // moment where given. The user's parameter groups stay as they are.
  void step(const std::vector<int>& parameters, const Hyperparameters* of = nullptr);
  [[nodiscard]] Hyperparameters hyperparameters() const;
  // Learning rates of all groups; 0 for options that have none.
  [[nodiscard]] std::vector<double> rates() const;
  // The float tensors of a parameter's state, in a fixed order; none before its first step.
  [[nodiscard]] std::vector<at::Tensor> state(const at::Tensor& parameter) const;

 private:
  std::vector<torch::optim::Optimizer*> optimizers_;
  std::unordered_map<const void*, int> indices_;  // of parameters
};

}  // namespace riffle::adapter
