// Flat memory for what travels as one: a run of elements for each element type.
#pragma once

#include <vector>

#include "runtime/memory.h"

namespace riffle::runtime {

struct Part {
  DType dtype = DType::f32;
  std::size_t count = 0;
  bool operator==(const Part&) const = default;
};
using Parts = std::vector<Part>;

// Where a tensor lies.
struct Place {
  int bucket = 0;
  int part = 0;
  std::size_t offset = 0;  // elements into the part
  std::size_t count = 0;
  // Gradients only: where the part says whether the parameter was used. It is averaged along, so
  // that it is zero exactly where nobody used it.
  std::size_t flag = 0;
};

class Flat {
 public:
  Flat() = default;
  Flat(Memory& memory, const Parts& parts);

  [[nodiscard]] const std::vector<TensorView>& parts() const { return parts_; }
  [[nodiscard]] bool empty() const { return parts_.empty(); }
  [[nodiscard]] TensorView at(const Place& place) const;
  [[nodiscard]] TensorView flag_at(const Place& place) const;

 private:
  Block block_;
  std::vector<TensorView> parts_;
};

// Kept between steps: fresh pages cost more than a copy. One thread at a time.
class FlatPool {
 public:
  Flat take(Memory& memory, const Parts& parts);
  void give_back(Parts parts, Flat flat);

 private:
  std::vector<std::pair<Parts, Flat>> free_;
};

// Every tensor starts on 64 bytes, for the kernels that work on it.
std::size_t aligned(std::size_t count, DType dtype);

}  // namespace riffle::runtime
