// B-Caffe's log (hclhkbu/B-Caffe): glog lines that end in
//
//   [index, elements, backward microseconds, communication microseconds, ...]
//
// A weight and its bias (indexes 2k and 2k+1) share one backward time and form one layer. Where an
// index occurs more than once the last one counts. Forward times are not logged: half of backward,
// as the authors' scripts take them. Other lines of the log are passed over.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "model/import/formats.h"
#include "riffle/error.h"

namespace riffle::model {
namespace {

// What stands between the brackets at the end of a line; nothing when that is no list of four
// numbers or more ("nan" counts as one: it is refused later, not passed over).
std::string_view bracketed(std::string_view raw) {
  const std::string_view line = trim(raw);
  const std::size_t open = line.rfind('[');
  if (!line.ends_with(']') || open == std::string_view::npos) return {};
  const std::string_view list = line.substr(open + 1, line.size() - open - 2);
  if (list.find_first_not_of("0123456789+-.eE, naif") != std::string_view::npos) return {};
  return std::ranges::count(list, ',') >= 3 ? list : std::string_view{};
}

struct Tensor {
  std::int64_t elements = 0;
  Seconds backward{};
};

// Adds a line's tensor, replacing an earlier one of the same index.
void read_tensor(std::string_view list, const std::string& where,
                 std::map<std::int64_t, Tensor>& tensors) {
  const auto fields = split(list, ',');
  const std::int64_t index = parse_integer(trim(fields[0]), where + ": index");
  const std::int64_t elements = parse_integer(trim(fields[1]), where + ": elements");
  const double backward = parse_number(trim(fields[2]), where + ": backward microseconds");
  if (index < 0) usage_error("{}: index: {} is negative", where, index);
  if (elements < 0 || elements > kMostWhole)
    usage_error("{}: elements: {} must be from 0 to 2^53", where, elements);
  if (backward < 0) usage_error("{}: backward microseconds: {} is negative", where, backward);
  tensors[index] = {elements, microseconds(backward)};
}

}  // namespace

bool looks_like_caffe(std::string_view text) {
  for (const std::string_view line : split(text, '\n'))
    if (!bracketed(line).empty()) return true;
  return false;
}

Trace import_caffe(std::string_view text, std::string_view source) {
  std::map<std::int64_t, Tensor> tensors;
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const std::string_view list = bracketed(line);
    if (!list.empty()) read_tensor(list, fmt::format("{}: line {}", source, number), tensors);
  }
  std::vector<TraceNode> nodes;
  std::int64_t last = -1;
  for (const auto& [index, tensor] : tensors) {
    const std::int64_t layer = index / 2;
    if (layer == last) {  // the bias: its weight came before and brought the time
      nodes.back().elements += tensor.elements;
      continue;
    }
    nodes.push_back(
        {fmt::format("layer{}", layer), tensor.elements, tensor.backward / 2, tensor.backward});
    last = layer;
  }
  Trace trace;
  trace.model = model_name(source);
  trace.layers = fold_nodes(nodes);
  trace.source = "measured: B-Caffe log; forward taken as half of backward; batch not known";
  validate(trace, source);
  return trace;
}

}  // namespace riffle::model
