#include "backend/tensors.h"

#include <ATen/Functions.h>

#include <torch/csrc/distributed/c10d/Utils.hpp>

namespace riffle::backend {

void check_tensor(const at::Tensor& tensor, const char* collective) {
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "riffle: ", collective,
                    " takes dense tensors, not ", tensor.layout());
  TORCH_CHECK_VALUE(tensor.device().is_cpu(), "riffle: ", collective,
                    " takes tensors on the CPU, not on ", tensor.device(),
                    "; for other devices name a backend for each, as in \"cpu:riffle,cuda:nccl\"");
}

void check_same(const at::Tensor& a, const at::Tensor& b, const char* collective) {
  TORCH_CHECK_VALUE(a.scalar_type() == b.scalar_type() && a.numel() == b.numel(),
                    "riffle: ", collective, ": a tensor of ", a.numel(), " ", a.scalar_type(),
                    " and one of ", b.numel(), " ", b.scalar_type());
}

Element element_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return {DType::f32, 1};
    case at::kDouble:
      return {DType::f64, 1};
    case at::kHalf:
      return {DType::f16, 1};
    case at::kBFloat16:
      return {DType::bf16, 1};
    case at::kComplexFloat:
      return {DType::f32, 2};
    case at::kComplexDouble:
      return {DType::f64, 2};
    case at::kByte:
    case at::kBool:
      return {DType::u8, 1};
    case at::kChar:
      return {DType::i8, 1};
    case at::kShort:
      return {DType::i16, 1};
    case at::kInt:
      return {DType::i32, 1};
    case at::kLong:
      return {DType::i64, 1};
    default:
      return {DType::u8, static_cast<std::int64_t>(c10::elementSize(type))};
  }
}

std::size_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
}

std::byte* data_of(const at::Tensor& contiguous) {
  return static_cast<std::byte*>(contiguous.mutable_data_ptr());
}

namespace {

Reduction reduction_of_bool(c10d::ReduceOp::RedOpType op) {
  switch (op) {
    case c10d::ReduceOp::PRODUCT:
    case c10d::ReduceOp::MIN:
    case c10d::ReduceOp::BAND:
      return Reduction::min;
    case c10d::ReduceOp::BXOR:
      return Reduction::bit_xor;
    default:
      return Reduction::max;
  }
}

Reduction reduction_of(c10d::ReduceOp::RedOpType op) {
  switch (op) {
    case c10d::ReduceOp::AVG:
      return Reduction::mean;
    case c10d::ReduceOp::PRODUCT:
      return Reduction::product;
    case c10d::ReduceOp::MIN:
      return Reduction::min;
    case c10d::ReduceOp::MAX:
      return Reduction::max;
    case c10d::ReduceOp::BAND:
      return Reduction::bit_and;
    case c10d::ReduceOp::BOR:
      return Reduction::bit_or;
    case c10d::ReduceOp::BXOR:
      return Reduction::bit_xor;
    default:
      return Reduction::sum;
  }
}

bool is_of_bits(Reduction reduction) {
  return reduction == Reduction::bit_and || reduction == Reduction::bit_or ||
         reduction == Reduction::bit_xor;
}

}  // namespace

Operation operation_of(const c10d::ReduceOp& op, at::ScalarType type) {
  TORCH_CHECK_VALUE(type == at::kBool || element_of(type).dtype != DType::u8 || type == at::kByte,
                    "riffle: no reductions of ", type);
  if (type == at::kBool) {
    TORCH_CHECK_VALUE(op.op_ != c10d::ReduceOp::AVG && op.op_ != c10d::ReduceOp::PREMUL_SUM,
                      "riffle: no averages of ", type);
    return {reduction_of_bool(op.op_), false};
  }
  const Reduction reduction = reduction_of(op.op_);
  const bool integer = at::isIntegralType(type, false);
  TORCH_CHECK_VALUE(integer || !is_of_bits(reduction), "riffle: no ", name_of(reduction), " of ",
                    type);
  TORCH_CHECK_VALUE(
      !at::isComplexType(type) || reduction == Reduction::sum || reduction == Reduction::mean,
      "riffle: no ", name_of(reduction), " of ", type);
  if (integer && reduction == Reduction::mean) return {Reduction::sum, true};
  return {reduction, false};
}

void multiply_before(const c10d::ReduceOp& op, at::Tensor& tensor) {
  if (op.op_ != c10d::ReduceOp::PREMUL_SUM) return;
  const auto* factor = static_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK_VALUE(factor != nullptr, "riffle: PREMUL_SUM without a factor");
  if (factor->tensor_factor.defined())
    tensor.mul_(factor->tensor_factor);
  else
    tensor.mul_(factor->double_factor);
}

Flat::Flat(const at::Tensor& tensor, bool copy_always) : tensor_(tensor) {
  const Element element = element_of(tensor.scalar_type());
  const std::int64_t own = tensor.numel() * element.each;
  const bool odd = size_of(element.dtype).count == 1 && own % 2 != 0;
  if (odd) {
    flat_ = at::zeros({tensor.numel() + 1}, tensor.options());
    flat_.narrow(0, 0, tensor.numel()).view(tensor.sizes()).copy_(tensor);
  } else {
    flat_ = tensor.is_contiguous() && !copy_always ? tensor
                                                   : tensor.clone(at::MemoryFormat::Contiguous);
  }
  view_ = {data_of(flat_), static_cast<std::size_t>(flat_.numel() * element.each), element.dtype};
  if (view_.count % 2 != 0 && size_of(element.dtype).count == 1) ++view_.count;  // see zeros
}

void Flat::give_back() {
  if (flat_.is_same(tensor_)) return;
  if (tensor_.numel() > 0)
    tensor_.copy_(flat_.view({-1}).narrow(0, 0, tensor_.numel()).view(tensor_.sizes()));
}

Lines::Lines(std::int64_t members, const at::Tensor& like) : like_(like) {
  const std::int64_t whole = 64 / static_cast<std::int64_t>(like.element_size());
  line_ = (like.numel() + whole - 1) / whole * whole;
  padding_ = static_cast<int>((line_ - like.numel()) * element_of(like.scalar_type()).each);
  all_ = at::empty({members * line_}, like.options());
  // What is added should be numbers.
  if (padding_ > 0)
    all_.view({members, line_}).narrow(1, like.numel(), line_ - like.numel()).zero_();
}

TensorView Lines::view() const {
  const Element element = element_of(all_.scalar_type());
  return {data_of(all_), static_cast<std::size_t>(all_.numel() * element.each), element.dtype};
}

at::Tensor Lines::part(int place) const {
  return all_.narrow(0, place * line_, like_.numel()).view(like_.sizes());
}

}  // namespace riffle::backend
