// Memory of the host, allocated by an engine, so that host peers reduce it in place.
#pragma once

#include "riffle/engine.h"
#include "runtime/memory.h"

namespace riffle::runtime {

class EngineMemory final : public Memory {
 public:
  explicit EngineMemory(Engine& engine) : engine_(engine) {}

  [[nodiscard]] Block allocate(std::size_t bytes) override;
  void copy(TensorView to, TensorView from) override;
  void fill(TensorView x, double value) override;
  void combine(TensorView out, std::span<const TensorView> inputs,
               std::span<const double> factors) override;
  void correct_statistics(TensorView x, TensorView mean, TensorView snapshot) override;
  [[nodiscard]] double square_sum(TensorView x) override;
  [[nodiscard]] bool is_zero(TensorView x) override;
  void read(std::span<std::byte> to, TensorView from) override;
  void write(TensorView to, std::span<const std::byte> from) override;

 private:
  Engine& engine_;
};

// Of one element, on the host.
double value_at(const TensorView& view, std::size_t index);
void set_value(const TensorView& view, std::size_t index, double value);

}  // namespace riffle::runtime
