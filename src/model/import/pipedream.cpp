// PipeDream's profiler (msr-fiddle/pipedream, profiler/*/profiles/*/graph.txt):
//
//   node4 -- Conv2d(3, 64, ...) -- forward_compute_time=1.5, backward_compute_time=2.9,
//            activation_size=205520896.000, parameter_size=37632.000        (on one line)
//   <tab>node1 -- node4                                                     (an edge; not needed)
//
// Times are milliseconds, sizes bytes of f32. Nodes run in the order of their numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "model/import/formats.h"
#include "riffle/error.h"

namespace riffle::model {
namespace {

constexpr std::string_view kSeparator = " -- ";
constexpr std::string_view kForward = "forward_compute_time=";
constexpr double kLargest = 9e15;  // bytes; whole in a double

// The text between " -- " number `index` and the next one; nothing when there are fewer.
std::string_view part(std::string_view line, int index) {
  for (; index > 0; --index) {
    const std::size_t at = line.find(kSeparator);
    if (at == std::string_view::npos) return {};
    line.remove_prefix(at + kSeparator.size());
  }
  return line.substr(0, line.find(kSeparator));
}

// The value of "key=" in a list parted by commas.
std::string_view raw_field(std::string_view fields, std::string_view key, const std::string& line) {
  for (const std::string_view entry : split(fields, ',')) {
    const std::string_view field = trim(entry);
    if (field.starts_with(key) && field.substr(key.size()).starts_with('='))
      return field.substr(key.size() + 1);
  }
  usage_error("{}: field {} is missing", line, key);
}

double number_field(std::string_view fields, std::string_view key, const std::string& line) {
  const std::string what = fmt::format("{}: {}", line, key);
  const double value = parse_number(raw_field(fields, key, line), what);
  if (value < 0) usage_error("{}: {} is negative", what, value);
  if (value > kLargest) usage_error("{}: {} is too large", what, value);
  return value;
}

PipedreamNode read_node(std::string_view text, const std::string& line) {
  const std::string_view fields = part(text, 2);
  PipedreamNode node;
  node.id = parse_integer(part(text, 0).substr(4), line + ": node");
  node.description = valid_utf8(one_line(part(text, 1)));
  node.forward = milliseconds(number_field(fields, "forward_compute_time", line));
  node.backward = milliseconds(number_field(fields, "backward_compute_time", line));
  const double bytes = number_field(fields, "parameter_size", line);
  if (bytes / 4 != std::floor(bytes / 4))
    usage_error("{}: parameter_size: {} is not a whole number of 4-byte floats", line, bytes);
  node.elements = static_cast<std::int64_t>(bytes / 4);
  // Elsewhere it may be a list, and nothing here needs it.
  if (node.is_input()) node.activation_bytes = number_field(fields, "activation_size", line);
  return node;
}

// Images of the usual sizes tell the batch; 0 when the inputs are something else.
int batch_of(const std::vector<PipedreamNode>& nodes) {
  const auto inputs = std::ranges::count_if(nodes, &PipedreamNode::is_input);
  const auto input = std::ranges::find_if(nodes, &PipedreamNode::is_input);
  if (inputs != 1 || input->activation_bytes <= 0) return 0;
  for (const int side : {224, 299}) {
    const double batch = input->activation_bytes / (3.0 * side * side * 4);
    if (batch == std::floor(batch) && batch <= 1 << 30) return static_cast<int>(batch);
  }
  return 0;
}

}  // namespace

bool looks_like_pipedream(std::string_view text) {
  return trim(text).starts_with("node") && text.find(kForward) != std::string_view::npos;
}

std::vector<PipedreamNode> read_pipedream(std::string_view text, std::string_view source) {
  std::vector<PipedreamNode> nodes;
  std::size_t number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty() || raw.starts_with('\t')) continue;
    const std::string where = fmt::format("{}: line {}", source, number);
    if (!line.starts_with("node") || part(line, 2).empty())
      usage_error("{}: {} is neither a node nor an edge", where, quote(line));
    nodes.push_back(read_node(line, where));
  }
  std::ranges::sort(nodes, {}, &PipedreamNode::id);
  const auto twice = std::ranges::adjacent_find(nodes, {}, &PipedreamNode::id);
  if (twice != nodes.end()) usage_error("{}: node{} occurs twice", source, twice->id);
  return nodes;
}

Trace import_pipedream(std::string_view text, std::string_view source) {
  const std::vector<PipedreamNode> nodes = read_pipedream(text, source);
  std::vector<TraceNode> layers;
  for (const PipedreamNode& node : nodes) {
    if (node.is_input()) continue;
    const std::string kind = node.description.substr(0, node.description.find('('));
    layers.push_back(
        {fmt::format("node{}:{}", node.id, kind), node.elements, node.forward, node.backward});
  }
  const int batch = batch_of(nodes);
  Trace trace;
  trace.model = model_name(source);
  trace.batch = std::max(batch, 1);
  trace.layers = fold_nodes(layers);
  trace.source = fmt::format("measured: PipeDream profile{}", batch > 0 ? "" : "; batch not known");
  validate(trace, source);
  return trace;
}

}  // namespace riffle::model
