#include "torch/optimizers.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <unordered_set>

#include "riffle/error.h"

namespace riffle::adapter {

namespace optim = torch::optim;

Optimizers::Optimizers(std::vector<optim::Optimizer*> optimizers,
                       const std::vector<at::Tensor>& parameters)
    : optimizers_(std::move(optimizers)) {
  for (std::size_t p = 0; p < parameters.size(); ++p)
    indices_[parameters[p].unsafeGetTensorImpl()] = static_cast<int>(p);
  for (const optim::Optimizer* optimizer : optimizers_) {
    RIFFLE_CHECK(optimizer != nullptr);
    if (dynamic_cast<const optim::LBFGS*>(optimizer) != nullptr)
      usage_error(
          "L-BFGS evaluates the model several times per step (a closure), so its gradients "
          "cannot be exchanged in between; use another optimizer");
    for (const optim::OptimizerParamGroup& group : optimizer->param_groups())
      for (const at::Tensor& parameter : group.params())
        if (parameter.requires_grad() && !indices_.contains(parameter.unsafeGetTensorImpl()))
          usage_error("the optimizer holds a parameter that the model does not train");
  }
}

void Optimizers::step(const std::vector<int>& parameters, const Hyperparameters* of) {
  const std::unordered_set<int> chosen(parameters.begin(), parameters.end());
  for (std::size_t o = 0; o < optimizers_.size(); ++o) {
    std::vector<optim::OptimizerParamGroup> groups;
    bool any = false;
    for (const optim::OptimizerParamGroup& group : optimizers_[o]->param_groups()) {
      std::vector<at::Tensor> some;
      // A group that was added since then had no part in that moment.
      const bool existed = of == nullptr || groups.size() < (*of)[o].size();
      for (const at::Tensor& parameter : group.params()) {
        const auto found = indices_.find(parameter.unsafeGetTensorImpl());
        if (found == indices_.end() && parameter.requires_grad() && parameter.grad().defined())
          usage_error(
              "a parameter that was frozen, or not the model's, when the session began has a "
              "gradient now, which is not exchanged; attach anew");
        if (existed && found != indices_.end() && chosen.contains(found->second))
          some.push_back(parameter);
      }
      any |= !some.empty();
      const bool other = of != nullptr && existed;
      groups.emplace_back(std::move(some),
                          (other ? *(*of)[o][groups.size()] : group.options()).clone());
    }
    if (!any) continue;
    // Whatever happens, the user gets back the very same objects.
    const auto swap = [&](void*) { std::swap(optimizers_[o]->param_groups(), groups); };
    swap(nullptr);
    const std::unique_ptr<void, decltype(swap)> restore(this, swap);
    optimizers_[o]->step();
  }
}

Hyperparameters Optimizers::hyperparameters() const {
  Hyperparameters all;
  for (const optim::Optimizer* optimizer : optimizers_) {
    auto& groups = all.emplace_back();
    for (const optim::OptimizerParamGroup& group : optimizer->param_groups())
      groups.push_back(group.options().clone());
  }
  return all;
}

std::vector<double> Optimizers::rates() const {
  std::vector<double> all;
  for (const optim::Optimizer* optimizer : optimizers_)
    for (const optim::OptimizerParamGroup& group : optimizer->param_groups()) try {
        all.push_back(group.options().get_lr());
      } catch (const c10::Error&) {
        all.push_back(0);
      }
  return all;
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
      add(adam->max_exp_avg_sq());
    } else if (auto* adamw = dynamic_cast<optim::AdamWParamState*>(state)) {
      add(adamw->exp_avg());
      add(adamw->exp_avg_sq());
      add(adamw->max_exp_avg_sq());
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
