#include "torch/tensors.h"

#include <ATen/ops/from_blob.h>

#include "riffle/error.h"

namespace riffle::adapter {

bool is_float(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16;
}

DType dtype_of(const at::Tensor& tensor, const std::string& name) {
  if (!tensor.device().is_cpu())
    usage_error("{}: is on {}; this engine works in host memory", name, tensor.device().str());
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return DType::f32;
    case at::kDouble:
      return DType::f64;
    case at::kHalf:
      return DType::f16;
    case at::kBFloat16:
      return DType::bf16;
    default:
      usage_error("{}: of type {}; known are float, double, half and bfloat16", name,
                  at::toString(tensor.scalar_type()));
  }
}

bool is_dense(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.is_non_overlapping_and_dense();
}

TensorView tensor_view(const at::Tensor& tensor, const std::string& name) {
  RIFFLE_CHECK(is_dense(tensor));
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.numel()),
          dtype_of(tensor, name)};
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  RIFFLE_CHECK(is_dense(tensor));
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

bool is_at(const at::Tensor& tensor, const at::Tensor& place) {
  return tensor.defined() && tensor.layout() == at::kStrided &&
         tensor.data_ptr() == place.data_ptr();
}

at::Tensor view_of(const TensorView& memory, const at::Tensor& like) {
  return at::from_blob(memory.data, like.sizes(), like.strides(),
                       like.options().requires_grad(false));
}

}  // namespace riffle::adapter
