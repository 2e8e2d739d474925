// A trace: the layers of a model with their sizes and times. It is what a planner needs to know of
// a model, whether measured, imported or computed from the architecture.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "riffle/units.h"

namespace riffle {

// A trace's values are floating point; collectives also take integers.
enum class DType { f32, f64, f16, bf16, u8, i8, i16, i32, i64 };

inline bool is_integer(DType dtype) {
  return dtype >= DType::u8;
}
Bytes size_of(DType dtype);
std::string_view name_of(DType dtype);
// One that a trace may have.
DType parse_dtype(std::string_view text, std::string_view what);

// A unit whose gradient becomes ready at once.
struct Layer {
  std::string name;
  std::int64_t elements = 0;  // parameters; a layer of a valid trace has at least one
  Seconds forward{};
  Seconds backward{};
  // Of its matrix, as the framework has it, {64, 3, 7, 7}; elements beyond those, a bias, come
  // after it. Empty: not known, or a vector.
  std::vector<std::int64_t> shape{};

  bool operator==(const Layer&) const = default;
};

struct Trace {
  std::string model;
  DType dtype = DType::f32;
  int batch = 1;              // samples per worker and step
  std::vector<Layer> layers;  // forward order; backward runs from the last to the first
  Seconds optimizer_step{};   // time of one whole optimizer step
  // Where the times come from: "measured ...", "modelled: ...". Empty when unknown.
  std::string source;

  bool operator==(const Trace&) const = default;

  [[nodiscard]] std::int64_t parameters() const;
  [[nodiscard]] Bytes bytes() const;
  [[nodiscard]] Bytes bytes(const Layer& layer) const;
  [[nodiscard]] Seconds forward() const;
  [[nodiscard]] Seconds backward() const;
  // Forward, backward and optimizer of one step.
  [[nodiscard]] Seconds compute() const;
};

// UsageError naming `source` and the layer for: no layers, an element count below 1, a negative or
// infinite time, no time at all, more elements than 2^53, a shape of more elements than the layer.
void validate(const Trace& trace, std::string_view source);

// A node of a model as profilers see it; one without parameters keeps its time.
struct TraceNode {
  std::string name;
  std::int64_t elements = 0;
  Seconds forward{};
  Seconds backward{};
  std::vector<std::int64_t> shape{};
};

// Folds nodes without parameters into layers: the backward time of such a node goes to the next
// layer with parameters that backward reaches (to the last one reached where none follows), its
// forward time to the next one that forward reaches (to the last one where none follows).
std::vector<Layer> fold_nodes(const std::vector<TraceNode>& nodes);

// One line: model, parameters, layers, times.
std::string print(const Trace& trace);
std::string to_json(const Trace& trace);
Trace trace_from_json(std::string_view text, std::string_view source);

}  // namespace riffle
