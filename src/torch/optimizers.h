// The user's optimizers, stepped for some parameters only.
#pragma once

#include <torch/optim/optimizer.h>

#include "riffle/collective.h"

namespace riffle::adapter {

class Optimizers {
 public:
  // UsageError for an optimizer that needs a closure, and for a parameter that is not among
  // `parameters`.
  Optimizers(std::vector<torch::optim::Optimizer*> optimizers,
             const std::vector<at::Tensor>& parameters);

  // One step of all optimizers for the parameters that are chosen (by index).
  void step(const std::vector<char>& chosen);
  // The float tensors of a parameter's state, in a fixed order; none before its first step.
  [[nodiscard]] std::vector<at::Tensor> state(const at::Tensor& parameter) const;

 private:
  std::vector<torch::optim::Optimizer*> optimizers_;
  // [optimizer][group][position]: the parameter's index
  std::vector<std::vector<std::vector<std::size_t>>> indices_;
};

}  // namespace riffle::adapter
