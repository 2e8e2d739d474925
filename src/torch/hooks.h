// A call for every gradient that is complete, as long as it lives.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace riffle::adapter {

class Hooks {
 public:
  using OnGradient = std::function<void(int parameter)>;
  // Hooks that were there before are called first, and are put back at the end.
  Hooks(std::vector<at::Tensor> parameters, OnGradient on_gradient);
  ~Hooks();
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

 private:
  std::vector<at::Tensor> parameters_;
  OnGradient on_gradient_;
};

}  // namespace riffle::adapter
