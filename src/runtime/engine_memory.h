// Memory of the host, allocated by an engine, so that host peers reduce it in place.
#pragma once

#include "riffle/engine.h"
#include "runtime/memory.h"

namespace riffle::runtime {

class EngineMemory final : public Memory {
 public:
  explicit EngineMemory(Engine& engine) : engine_(engine) {}

  [[nodiscard]] Block allocate(std::size_t bytes) override;
  void copy(Elements to, Elements from) override;
  void fill(Elements x, double value) override;
  void combine(Elements out, std::span<const Elements> inputs,
               std::span<const double> factors) override;
  void correct_statistics(Elements x, Elements mean, Elements snapshot) override;
  [[nodiscard]] double square_sum(Elements x) override;
  [[nodiscard]] bool is_zero(Elements x) override;
  void read(std::span<std::byte> to, Elements from) override;
  void write(Elements to, std::span<const std::byte> from) override;

 private:
  Engine& engine_;
};

// Of one element, on the host.
double value_at(const Elements& elements, std::size_t index);
void set_value(const Elements& elements, std::size_t index, double value);

}  // namespace riffle::runtime
