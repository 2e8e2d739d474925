#include "torch/optimizers.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <unordered_map>

#include "riffle/error.h"

namespace riffle::adapter {

namespace optim = torch::optim;

Optimizers::Optimizers(std::vector<optim::Optimizer*> optimizers,
                       const std::vector<at::Tensor>& parameters)
    : optimizers_(std::move(optimizers)) {
  std::unordered_map<const void*, std::size_t> index;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    index[parameters[p].unsafeGetTensorImpl()] = p;
  for (optim::Optimizer* optimizer : optimizers_) {
    RIFFLE_CHECK(optimizer != nullptr);
    if (dynamic_cast<optim::LBFGS*>(optimizer) != nullptr)
      usage_error(
          "L-BFGS evaluates the model several times per step (a closure), so its gradients "
          "cannot be exchanged in between; use another optimizer");
    auto& groups = indices_.emplace_back();
    for (const optim::OptimizerParamGroup& group : optimizer->param_groups()) {
      auto& positions = groups.emplace_back();
      for (const at::Tensor& parameter : group.params()) {
        const auto found = index.find(parameter.unsafeGetTensorImpl());
        if (found == index.end())
          usage_error("the optimizer holds a parameter that the model does not train");
        positions.push_back(found->second);
      }
    }
  }
}

void Optimizers::step(const std::vector<char>& chosen) {
  for (std::size_t o = 0; o < optimizers_.size(); ++o) {
    auto& groups = optimizers_[o]->param_groups();
    RIFFLE_CHECK_EQ(groups.size(), indices_[o].size());
    std::vector<std::vector<at::Tensor>> all(groups.size());
    bool any = false;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      all[g] = groups[g].params();
      std::vector<at::Tensor> some;
      for (std::size_t i = 0; i < all[g].size(); ++i)
        if (chosen[indices_[o][g][i]]) some.push_back(all[g][i]);
      any |= !some.empty();
      groups[g].params() = std::move(some);
    }
    const auto restore = [&] {
      for (std::size_t g = 0; g < groups.size(); ++g) groups[g].params() = std::move(all[g]);
    };
    try {
      if (any) optimizers_[o]->step();
    } catch (...) {
      restore();
      throw;
    }
    restore();
  }
}

std::vector<at::Tensor> Optimizers::state(const at::Tensor& parameter) const {
  std::vector<at::Tensor> tensors;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined()) tensors.push_back(tensor);
  };
  for (optim::Optimizer* optimizer : optimizers_) {
    const auto found = optimizer->state().find(parameter.unsafeGetTensorImpl());
    if (found == optimizer->state().end()) continue;
    optim::OptimizerParamState* state = found->second.get();
    if (auto* sgd = dynamic_cast<optim::SGDParamState*>(state)) {
      add(sgd->momentum_buffer());
    } else if (auto* adam = dynamic_cast<optim::AdamParamState*>(state)) {
      add(adam->exp_avg());
      add(adam->exp_avg_sq());
    } else if (auto* adamw = dynamic_cast<optim::AdamWParamState*>(state)) {
      add(adamw->exp_avg());
      add(adamw->exp_avg_sq());
    } else if (auto* rmsprop = dynamic_cast<optim::RMSpropParamState*>(state)) {
      add(rmsprop->square_avg());
      add(rmsprop->momentum_buffer());
      add(rmsprop->grad_avg());
    } else if (auto* adagrad = dynamic_cast<optim::AdagradParamState*>(state)) {
      add(adagrad->sum());
    } else {
      usage_error("mix_state: the state of this optimizer is not known here");
    }
  }
  return tensors;
}

}  // namespace riffle::adapter
