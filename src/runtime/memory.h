// Where the values of a session live, and the arithmetic on them. Two kinds: memory of an engine on
// the host (engine_memory.h), and torch's tensors on any device, behind the Python package.
#pragma once

#include <memory>
#include <span>

#include "riffle/collective.h"

namespace riffle::runtime {

// Memory with whoever frees it. Addresses may be a device's: only a Memory looks behind them.
struct Block {
  std::span<std::byte> bytes;
  std::shared_ptr<void> owner;
};

// One thread at a time. Views are of blocks of this memory, or of the model's own tensors.
class Memory {
 public:
  virtual ~Memory() = default;

  // Zeroed, aligned to 64 bytes.
  [[nodiscard]] virtual Block allocate(std::size_t bytes) = 0;

  virtual void copy(TensorView to, TensorView from) = 0;
  virtual void fill(TensorView x, double value) = 0;
  // out <- sum of factors[i] * inputs[i]; `out` may be among the inputs.
  virtual void combine(TensorView out, std::span<const TensorView> inputs,
                       std::span<const double> factors) = 0;
  // x <- x + (mean - snapshot), element by element, except where that would make a value that all
  // three have above zero (a variance) vanish: then the smaller of x and mean.
  virtual void correct_statistics(TensorView x, TensorView mean, TensorView snapshot) = 0;

  // --- These look at values, which a device must finish first.
  [[nodiscard]] virtual double square_sum(TensorView x) = 0;
  [[nodiscard]] virtual bool is_zero(TensorView x) = 0;
  // To and from bytes of the host, for checkpoints.
  virtual void read(std::span<std::byte> to, TensorView from) = 0;
  virtual void write(TensorView to, std::span<const std::byte> from) = 0;
};

std::size_t bytes_of(const TensorView& view);
// `count` elements from `first` on.
TensorView part_of(const TensorView& of, std::size_t first, std::size_t count);

}  // namespace riffle::runtime
