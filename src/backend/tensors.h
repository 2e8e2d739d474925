// Tensors as our collectives want them: dense, contiguous, of a type they know.
#pragma once

#include <ATen/core/Tensor.h>

#include <torch/csrc/distributed/c10d/Types.hpp>

#include "riffle/collective.h"

namespace riffle::backend {

// ValueError unless it is a dense tensor on the CPU.
void check_tensor(const at::Tensor& tensor, const char* collective);
void check_same(const at::Tensor& a, const at::Tensor& b, const char* collective);

// The type that a tensor's elements travel as, and how many of ours one of its is: complex numbers
// are two, booleans bytes, and what we do not know is bytes too.
struct Element {
  DType dtype = DType::u8;
  std::int64_t each = 1;
};
Element element_of(at::ScalarType type);
std::size_t bytes_of(const at::Tensor& tensor);
std::byte* data_of(const at::Tensor& contiguous);

// How an operation of torch is done with ours.
struct Operation {
  Reduction reduction = Reduction::sum;
  bool divide = false;  // integers are averaged by dividing their sum, toward zero
};
// ValueError where a type has no such operation.
Operation operation_of(const c10d::ReduceOp& op, at::ScalarType type);
// Of PREMUL_SUM: multiplies by its factor.
void multiply_before(const c10d::ReduceOp& op, at::Tensor& tensor);

// Contiguous memory for a tensor while a collective works on it: its own where that will do. Where
// it is not, its values are copied in, and back by give_back(). 8-bit elements get an even count.
class Flat {
 public:
  Flat(const at::Tensor& tensor, bool copy_always = false);
  [[nodiscard]] TensorView view() const { return view_; }
  [[nodiscard]] const at::Tensor& tensor() const { return flat_; }
  void give_back();

 private:
  at::Tensor tensor_;
  at::Tensor flat_;  // as the tensor, or with an element more
  TensorView view_;
};

// A part for each member, in ascending order of ranks, each on whole lines of 64 bytes.
class Lines {
 public:
  Lines(std::int64_t members, const at::Tensor& like);
  [[nodiscard]] TensorView view() const;
  [[nodiscard]] int padding() const { return padding_; }
  // The part of a member, shaped like the tensor it was made for.
  [[nodiscard]] at::Tensor part(int place) const;

 private:
  at::Tensor all_;
  at::Tensor like_;
  std::int64_t line_;  // elements of a part, padding included
  int padding_;        // in our elements
};

}  // namespace riffle::backend
