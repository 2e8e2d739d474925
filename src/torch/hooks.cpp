#include "torch/hooks.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace riffle::adapter {
namespace {

using torch::autograd::PostAccumulateGradHook;

class Hook : public PostAccumulateGradHook {
 public:
  Hook(std::unique_ptr<PostAccumulateGradHook> before, const Hooks::OnGradient& call, int parameter)
      : before_(std::move(before)), call_(call), parameter_(parameter) {}

  void operator()(const at::Tensor& tensor) override {
    if (before_) (*before_)(tensor);
    call_(parameter_);
  }
  std::unique_ptr<PostAccumulateGradHook> take_before() { return std::move(before_); }

 private:
  std::unique_ptr<PostAccumulateGradHook> before_;
  const Hooks::OnGradient& call_;
  int parameter_;
};

}  // namespace

Hooks::Hooks(std::vector<at::Tensor> parameters, OnGradient on_gradient)
    : parameters_(std::move(parameters)), on_gradient_(std::move(on_gradient)) {
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    auto before = std::move(torch::autograd::impl::post_acc_grad_hooks(parameters_[p]));
    torch::autograd::impl::set_post_acc_grad_hooks(
        parameters_[p],
        std::make_unique<Hook>(std::move(before), on_gradient_, static_cast<int>(p)));
  }
}

Hooks::~Hooks() {
  for (const at::Tensor& parameter : parameters_) {
    auto ours = std::move(torch::autograd::impl::post_acc_grad_hooks(parameter));
    auto* hook = dynamic_cast<Hook*>(ours.get());
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, hook ? hook->take_before() : nullptr);
  }
}

}  // namespace riffle::adapter
