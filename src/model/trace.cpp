#include "riffle/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <span>

#include "base/json.h"
#include "base/text.h"
#include "riffle/error.h"

namespace riffle {
namespace {

constexpr int kTraceVersion = 1;
constexpr std::array<std::string_view, 9> kDTypes{"f32", "f64", "f16", "bf16", "u8",
                                                  "i8",  "i16", "i32", "i64"};
constexpr std::span kTraceDTypes = std::span(kDTypes).first<4>();

void check_shape(const Layer& layer, const std::string& where) {
  std::int64_t left = layer.elements;
  for (const std::int64_t size : layer.shape) {
    if (size < 1) usage_error("{}: {} must be at least 1", where, size);
    left /= size;
  }
  if (left < 1)
    usage_error("{}: {} has more elements than the layer, {}", where, fmt::join(layer.shape, " x "),
                layer.elements);
}

std::vector<std::int64_t> read_shape(const JsonReader& layer) {
  std::vector<std::int64_t> shape;
  if (!layer.has("shape")) return shape;
  const JsonReader sizes = layer.at("shape");
  for (std::size_t i = 0; i < sizes.size(); ++i)
    shape.push_back(sizes.at(i).integer(1, kMostWhole));
  return shape;
}

}  // namespace

Bytes size_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
    case DType::i8:
      return Bytes{1};
    case DType::f32:
    case DType::i32:
      return Bytes{4};
    case DType::f64:
    case DType::i64:
      return Bytes{8};
    case DType::f16:
    case DType::bf16:
    case DType::i16:
      break;
  }
  return Bytes{2};
}

std::string_view name_of(DType dtype) {
  return kDTypes.at(static_cast<std::size_t>(dtype));
}

DType parse_dtype(std::string_view text, std::string_view what) {
  for (std::size_t i = 0; i < kTraceDTypes.size(); ++i)
    if (kTraceDTypes[i] == text) return static_cast<DType>(i);
  const std::vector<std::string> known(kTraceDTypes.begin(), kTraceDTypes.end());
  usage_error("{}: {}", what, unknown_name("dtype", text, known));
}

std::int64_t Trace::parameters() const {
  std::int64_t sum = 0;
  for (const Layer& layer : layers) sum += layer.elements;
  return sum;
}

Bytes Trace::bytes() const {
  return size_of(dtype) * parameters();
}
Bytes Trace::bytes(const Layer& layer) const {
  return size_of(dtype) * layer.elements;
}

Seconds Trace::forward() const {
  Seconds sum{};
  for (const Layer& layer : layers) sum += layer.forward;
  return sum;
}

Seconds Trace::backward() const {
  Seconds sum{};
  for (const Layer& layer : layers) sum += layer.backward;
  return sum;
}

Seconds Trace::compute() const {
  return forward() + backward() + optimizer_step;
}

void validate(const Trace& trace, std::string_view source) {
  if (trace.layers.empty()) usage_error("{}: layers: no layer has parameters", source);
  const auto check_time = [&](Seconds time, const std::string& field) {
    if (!std::isfinite(time.count()) || time.count() < 0)
      usage_error("{}: {}: {} s is not a time", source, field, time.count());
  };
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    const Layer& layer = trace.layers[i];
    if (layer.elements < 1 || layer.elements > kMostWhole - sum)
      usage_error("{}: layers[{}].elements: {} must be from 1 to 2^53 in all", source, i,
                  layer.elements);
    sum += layer.elements;
    check_shape(layer, fmt::format("{}: layers[{}].shape", source, i));
    check_time(layer.forward, fmt::format("layers[{}].forward", i));
    check_time(layer.backward, fmt::format("layers[{}].backward", i));
  }
  check_time(trace.optimizer_step, "optimizer_step");
  check_time(trace.compute(), "sum of all times");
  if (trace.compute().count() <= 0) usage_error("{}: all times of the trace are zero", source);
}

std::vector<Layer> fold_nodes(const std::vector<TraceNode>& nodes) {
  std::vector<Layer> layers;
  Seconds forward_waiting{};   // of nodes before the next layer in forward order
  Seconds backward_waiting{};  // of nodes before the first layer: backward reaches it last
  for (const TraceNode& node : nodes) {
    if (node.elements > 0) {
      layers.push_back({node.name, node.elements, node.forward + forward_waiting,
                        node.backward + backward_waiting, node.shape});
      forward_waiting = backward_waiting = Seconds{};
      continue;
    }
    forward_waiting += node.forward;
    // Backward runs from the end: the next layer it reaches is the previous one in this order.
    if (layers.empty())
      backward_waiting += node.backward;
    else
      layers.back().backward += node.backward;
  }
  if (!layers.empty()) layers.back().forward += forward_waiting;
  return layers;
}

std::string print(const Trace& trace) {
  return fmt::format("{}: {} layers, {} parameters ({}, {}), batch {}, forward {}, backward {}{}",
                     trace.model, trace.layers.size(), trace.parameters(), name_of(trace.dtype),
                     print(trace.bytes()), trace.batch, print(trace.forward()),
                     print(trace.backward()),
                     trace.source.empty() ? "" : fmt::format(" ({})", trace.source));
}

std::string to_json(const Trace& trace) {
  Json json{{"riffle", "trace"},
            {"version", kTraceVersion},
            {"model", trace.model},
            {"dtype", name_of(trace.dtype)},
            {"batch", trace.batch}};
  if (trace.optimizer_step.count() > 0) json["optimizer_step"] = trace.optimizer_step.count();
  if (!trace.source.empty()) json["source"] = trace.source;
  json["layers"] = Json::array();
  for (const Layer& layer : trace.layers) {
    json["layers"].push_back(Json{{"name", layer.name},
                                  {"elements", layer.elements},
                                  {"forward", layer.forward.count()},
                                  {"backward", layer.backward.count()}});
    if (!layer.shape.empty()) json["layers"].back()["shape"] = layer.shape;
  }
  return json.dump(1) + "\n";
}

Trace trace_from_json(std::string_view text, std::string_view source) {
  const Json json = parse_json(text, source);
  const JsonReader reader(json, std::string(source));
  reader.expect_document("trace", kTraceVersion);
  Trace trace;
  trace.model = reader.at("model").text();
  trace.dtype = parse_dtype(reader.at("dtype").text(), reader.at("dtype").where());
  trace.batch = static_cast<int>(reader.at("batch").integer(1, 1 << 30));
  if (reader.has("optimizer_step")) trace.optimizer_step = reader.at("optimizer_step").seconds();
  if (reader.has("source")) trace.source = reader.at("source").text();
  const JsonReader layers = reader.at("layers");
  std::vector<TraceNode> nodes;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const JsonReader layer = layers.at(i);
    nodes.push_back({layer.at("name").text(), layer.at("elements").integer(0, kMostWhole),
                     layer.at("forward").seconds(), layer.at("backward").seconds(),
                     read_shape(layer)});
  }
  trace.layers = fold_nodes(nodes);
  validate(trace, source);
  return trace;
}

}  // namespace riffle
