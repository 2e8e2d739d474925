#include "model/import/torch_events.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "base/json.h"
#include "base/text.h"

namespace riffle::model {
namespace {

constexpr double kLatest = 1e18;  // microseconds; sums and differences stay finite

double time_field(const JsonReader& reader, std::string_view key) {
  const JsonReader field = reader.at(key);
  const double time = field.number_at_least(0);
  if (time > kLatest) field.fail("is no time in microseconds");
  return time;
}

void read_first_input(const JsonReader& args, TorchOp& op) {
  if (!args.has("Input Dims") || args.at("Input Dims").size() == 0) return;
  // An entry is a list of sizes; for an argument that is a list of tensors, a list of lists.
  const JsonReader dims = args.at("Input Dims").at(std::size_t{0});
  op.has_dims = true;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims.at(i).is_number()) op.first_dims.push_back(dims.at(i).integer(0, kMostWhole));
  if (!args.has("Input type") || args.at("Input type").size() == 0) return;
  const JsonReader type = args.at("Input type").at(std::size_t{0});
  if (type.is_text()) op.first_type = type.text();
}

TorchOp read_op(const JsonReader& event, std::size_t index, std::string name) {
  TorchOp op;
  op.name = std::move(name);
  op.index = index;
  op.start = time_field(event, "ts");
  op.end = op.start + time_field(event, "dur");
  op.where = event.where();
  if (!event.has("args")) return op;
  const JsonReader args = event.at("args");
  if (args.has("Sequence number"))
    op.sequence = args.at("Sequence number").integer(-1, std::numeric_limits<int>::max());
  read_first_input(args, op);
  return op;
}

bool is_kernel(std::string_view category) {
  return category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset";
}
bool is_launch(std::string_view category) {
  return category.ends_with("_runtime") || category.ends_with("_driver");
}

// A launch and its kernel carry the same correlation number.
struct Correlated {
  std::unordered_map<std::int64_t, double> launches;     // to the launch's start
  std::vector<std::pair<std::int64_t, double>> kernels;  // to the kernel's end
};

void read_correlated(const JsonReader& event, bool launch, Correlated& all) {
  if (!event.has("args") || !event.at("args").has("correlation")) return;
  const std::int64_t number = event.at("args").at("correlation").integer(0, kMostWhole);
  const double start = time_field(event, "ts");
  if (launch)
    all.launches.emplace(number, start);
  else
    all.kernels.emplace_back(number, start + time_field(event, "dur"));
}

}  // namespace

TorchEvents read_torch_events(std::string_view text, std::string_view source) {
  const Json json = parse_json(text, source);
  const JsonReader root(json, std::string(source));
  const JsonReader list = json.is_array() ? root : root.at("traceEvents");
  TorchEvents events;
  Correlated correlated;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonReader event = list.at(i);
    if (event.at("ph").text() != "X" || !event.has("cat")) continue;
    const std::string category = event.at("cat").text();
    if (category == "cpu_op") {
      events.ops.push_back(read_op(event, i, event.at("name").text()));
    } else if (category == "user_annotation") {
      std::string name = event.at("name").text();
      if (name.starts_with("Optimizer.step#"))
        events.optimizer_steps.push_back(read_op(event, i, std::move(name)));
    } else if (is_kernel(category) || is_launch(category)) {
      read_correlated(event, is_launch(category), correlated);
    }
  }
  for (const auto& [number, end] : correlated.kernels)
    if (const auto launch = correlated.launches.find(number); launch != correlated.launches.end())
      events.kernels.push_back({launch->second, end});
  std::ranges::sort(events.ops, {},
                    [](const TorchOp& op) { return std::tuple(op.start, -op.end, op.index); });
  std::ranges::sort(events.kernels, {}, &TorchKernel::launched);
  return events;
}

}  // namespace riffle::model
