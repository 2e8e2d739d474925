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

// One thread at a time. Elements are of blocks of this memory, or of the model's own tensors.
class Memory {
 public:
  virtual ~Memory() = default;

  // Zeroed, aligned to 64 bytes.
  [[nodiscard]] virtual Block allocate(std::size_t bytes) = 0;

  virtual void copy(Elements to, Elements from) = 0;
  virtual void fill(Elements x, double value) = 0;
  // out <- sum of factors[i] * inputs[i]; `out` may be among the inputs.
  virtual void combine(Elements out, std::span<const Elements> inputs,
                       std::span<const double> factors) = 0;
  // x <- x + (mean - snapshot), element by element, except where that would make a value that all
  // three have above zero (a variance) vanish: then the smaller of x and mean.
  virtual void correct_statistics(Elements x, Elements mean, Elements snapshot) = 0;

  // --- These look at values, which a device must finish first.
  [[nodiscard]] virtual double square_sum(Elements x) = 0;
  [[nodiscard]] virtual bool is_zero(Elements x) = 0;
  // To and from bytes of the host, for checkpoints.
  virtual void read(std::span<std::byte> to, Elements from) = 0;
  virtual void write(Elements to, std::span<const std::byte> from) = 0;
};

std::size_t bytes_of(const Elements& elements);
// `count` elements from `first` on.
Elements part_of(const Elements& of, std::size_t first, std::size_t count);

}  // namespace riffle::runtime
