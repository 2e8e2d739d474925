// Where the tensors of a model lie in the flat memory of its buckets. A bucket has a part for each
// element type, and one for each type of buffers, which ride with the weights of the last bucket.
#pragma once

#include <vector>

#include "riffle/bucket.h"
#include "riffle/collective.h"
#include "riffle/session.h"

namespace riffle::runtime {

// A run of elements of one type that travels as one.
struct Part {
  DType dtype = DType::f32;
  std::size_t count = 0;
  bool statistics = false;  // buffers: averaged as they are, never extrapolated
  bool operator==(const Part&) const = default;
};

struct Place {
  int bucket = 0;
  int part = 0;
  std::size_t offset = 0;  // elements into the part
  std::size_t count = 0;
  // Gradients only: where the part says whether the parameter was used. It is averaged along, so
  // that it is zero exactly where nobody used it.
  std::size_t flag = 0;
};

struct Layout {
  Layout(const ModelSpec& model, BucketPlan plan);

  BucketPlan buckets;
  // By bucket; a bucket holds the parameters first..last.
  std::vector<std::vector<Part>> gradient_parts;
  std::vector<std::vector<Part>> weight_parts;
  std::vector<Place> gradients;  // by parameter
  std::vector<Place> weights;    // by parameter
  std::vector<Place> buffers;
  std::vector<int> bucket_of;  // by parameter
};

// Engine memory for the parts of a bucket, zeroed.
class Flat {
 public:
  Flat() = default;
  Flat(Engine& engine, const std::vector<Part>& parts);

  [[nodiscard]] const std::vector<Elements>& parts() const { return parts_; }
  [[nodiscard]] bool empty() const { return parts_.empty(); }
  [[nodiscard]] Elements at(const Place& place) const;
  [[nodiscard]] std::span<std::byte> bytes() const { return memory_.bytes(); }

 private:
  Buffer memory_;
  std::vector<Elements> parts_;
};

// Memory for snapshots, kept between steps: fresh pages cost more than a copy. One thread at a
// time.
class FlatPool {
 public:
  Flat take(Engine& engine, const std::vector<Part>& parts);
  void give_back(std::vector<Part> parts, Flat flat);

 private:
  std::vector<std::pair<std::vector<Part>, Flat>> free_;
};

std::size_t bytes_of(const Elements& elements);
std::size_t bytes_of(const std::vector<Part>& parts);
double value_at(const Elements& elements, std::size_t index);
void set_value(const Elements& elements, std::size_t index, double value);
double square_sum(const Elements& elements);

}  // namespace riffle::runtime
