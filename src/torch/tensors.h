// Tensors as memory, and memory as tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "riffle/session.h"

namespace riffle::adapter {

// UsageError naming the tensor where it is no float of ours, or not in host memory.
DType dtype_of(const at::Tensor& tensor, const std::string& name);
bool is_float(const at::Tensor& tensor);

// Dense in some order of dimensions: its memory is exactly its elements.
bool is_dense(const at::Tensor& tensor);

// Its memory; it must be dense.
TensorView tensor_view(const at::Tensor& tensor, const std::string& name);
std::span<std::byte> bytes_of(const at::Tensor& tensor);

// Whether both lie at the same place; an undefined tensor lies nowhere.
bool is_at(const at::Tensor& tensor, const at::Tensor& place);

// Memory seen as a tensor of the shape and strides of `like`.
at::Tensor view_of(const TensorView& memory, const at::Tensor& like);

}  // namespace riffle::adapter
