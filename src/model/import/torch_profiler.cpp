// torch.profiler's Chrome JSON (export_chrome_trace), recorded with record_shapes=True.
//
// A gradient is ready when its torch::autograd::AccumulateGrad ends; the shape of its input is the
// parameter's. One layer per parameter: backward time is the difference of successive ready times,
// in reverse the forward order. What the file does not say per parameter is divided: the measured
// forward span in proportion to the backward times. A backward pass is a run of autograd functions;
// sequence numbers fall within it, so a higher one begins the next. Of several steps the last
// complete one counts. The names of parameters are not in the file, shapes stand for them.
//
// On a device operators only launch kernels. A moment of the CPU then means: everything launched so
// far is done.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/json.h"
#include "base/text.h"
#include "model/import/formats.h"
#include "model/import/torch_events.h"
#include "riffle/error.h"

namespace riffle::model {
namespace {

constexpr std::string_view kFunction = "autograd::engine::evaluate_function: ";
constexpr std::string_view kAccumulate = "torch::autograd::AccumulateGrad";

struct Backward {
  double start = 0;
  double end = 0;
  std::int64_t first_sequence = -1;  // of the last function reached: the model's first operator
  std::int64_t last_sequence = -1;
  std::vector<const TorchOp*> gradients;
};

std::vector<Backward> find_backwards(const std::vector<TorchOp>& ops) {
  std::vector<Backward> passes;
  for (const TorchOp& op : ops) {
    if (op.name.starts_with(kFunction)) {
      // A function within a function is recomputation (checkpointing), not a new pass.
      const bool nested = !passes.empty() && op.start < passes.back().end;
      if (passes.empty() || (!nested && op.sequence > passes.back().last_sequence))
        passes.push_back({op.start, op.end, op.sequence, op.sequence, {}});
      Backward& pass = passes.back();
      pass.end = std::max(pass.end, op.end);
      if (op.sequence < 0 || nested) continue;
      pass.last_sequence = std::max(pass.last_sequence, op.sequence);
      pass.first_sequence =
          pass.first_sequence < 0 ? op.sequence : std::min(pass.first_sequence, op.sequence);
    } else if (op.name == kAccumulate && !passes.empty()) {
      passes.back().gradients.push_back(&op);
    }
  }
  for (Backward& pass : passes)
    std::ranges::sort(pass.gradients, {},
                      [](const TorchOp* op) { return std::pair(op->end, op->index); });
  return passes;
}

// The outermost operator that made the first node of the graph. Sequence numbers only count nodes,
// so what ran before it without making one (data loading, loss.item()) has the same number: the
// last one counts. (So do layers without trainable parameters at the front: they are left out.)
const TorchOp* first_forward(const std::vector<TorchOp>& ops, const Backward& pass, double after) {
  const TorchOp* first = nullptr;
  for (const TorchOp& op : ops) {
    if (op.start >= pass.start) break;
    if (op.start < after || op.sequence != pass.first_sequence) continue;
    if (first == nullptr || op.start >= first->end) first = &op;
  }
  return first;
}

// Maps a moment of the CPU to the moment when all that was launched by then is done.
class DeviceClock {
 public:
  explicit DeviceClock(std::vector<TorchKernel> kernels) : kernels_(std::move(kernels)) {
    double latest = 0;
    for (TorchKernel& kernel : kernels_) kernel.end = latest = std::max(latest, kernel.end);
  }
  [[nodiscard]] double operator()(double moment) const {
    const auto next = std::ranges::upper_bound(kernels_, moment, {}, &TorchKernel::launched);
    return next == kernels_.begin() ? moment : std::max(moment, std::prev(next)->end);
  }

 private:
  std::vector<TorchKernel> kernels_;  // by launch; end of all up to this one
};

std::int64_t elements_of(const TorchOp& gradient) {
  if (!gradient.has_dims)
    usage_error("{}: {}: \"Input Dims\" is missing; record the profile with record_shapes=True",
                gradient.where, kAccumulate);
  std::int64_t product = 1;
  for (const std::int64_t size : gradient.first_dims) {
    if (size > 0 && product > kMostWhole / size)
      usage_error("{}: Input Dims: [{}] has more than 2^53 elements", gradient.where,
                  fmt::join(gradient.first_dims, ", "));
    product *= size;
  }
  return product;
}

// Of several types the widest, so that no message is underestimated.
DType dtype_of(const Backward& pass) {
  constexpr std::array<std::pair<std::string_view, DType>, 4> names{{{"c10::Half", DType::f16},
                                                                     {"c10::BFloat16", DType::bf16},
                                                                     {"float", DType::f32},
                                                                     {"double", DType::f64}}};
  std::size_t widest = 0;
  for (const TorchOp* gradient : pass.gradients) {
    const auto found =
        std::ranges::find(names, gradient->first_type, &std::pair<std::string_view, DType>::first);
    if (found == names.end())
      usage_error("{}: Input type: {} is no type of a gradient", gradient->where,
                  quote(gradient->first_type));
    widest = std::max(widest, static_cast<std::size_t>(found - names.begin()));
  }
  return names[widest].second;
}

// Known where the first operator takes samples along its first dimension; else 0.
int batch_of(const TorchOp& op) {
  const std::size_t rank = op.first_dims.size();
  const bool known = (op.name == "aten::conv2d" && rank == 4) ||
                     (op.name == "aten::conv1d" && rank == 3) ||
                     (op.name == "aten::linear" && rank == 2);
  return known && op.first_dims[0] <= 1 << 30 ? static_cast<int>(op.first_dims[0]) : 0;
}

std::vector<TraceNode> make_nodes(const Backward& pass, Seconds forward, const DeviceClock& done) {
  std::vector<TraceNode> nodes;
  double before = done(pass.start);
  const double total = done(pass.gradients.back()->end) - before;
  for (const TorchOp* gradient : pass.gradients) {
    const double ready = done(gradient->end);
    const double share =
        total > 0 ? (ready - before) / total : 1.0 / static_cast<double>(pass.gradients.size());
    const std::size_t index = pass.gradients.size() - 1 - nodes.size();
    nodes.push_back({fmt::format("tensor{}:{}", index, fmt::join(gradient->first_dims, "x")),
                     elements_of(*gradient), forward * share, microseconds(ready - before)});
    before = ready;
  }
  std::ranges::reverse(nodes);
  return nodes;
}

}  // namespace

bool looks_like_torch_profiler(std::string_view text) {
  const std::string_view start = trim(text);
  if (start.starts_with('[')) return trim(start.substr(1)).starts_with('{');
  return start.starts_with('{') && start.find("\"traceEvents\"") != std::string_view::npos;
}

Trace import_torch_profiler(std::string_view text, std::string_view source) {
  const TorchEvents events = read_torch_events(text, source);
  const std::vector<Backward> passes = find_backwards(events.ops);
  const auto most = std::ranges::max_element(
      passes, {}, [](const Backward& pass) { return pass.gradients.size(); });
  if (most == passes.end() || most->gradients.empty())
    usage_error("{}: traceEvents: no {}; profile whole training steps", source, kAccumulate);

  const DeviceClock done(events.kernels);
  for (std::size_t i = passes.size(); i-- > 0;) {
    const Backward& pass = passes[i];
    if (pass.gradients.size() != most->gradients.size()) continue;
    const TorchOp* first = first_forward(events.ops, pass, i == 0 ? 0 : passes[i - 1].end);
    if (first == nullptr) continue;

    Trace trace;
    trace.model = model_name(source);
    const int batch = batch_of(*first);
    trace.batch = std::max(batch, 1);
    const Seconds forward = microseconds(done(pass.start) - done(first->start));
    trace.layers = fold_nodes(make_nodes(pass, forward, done));
    trace.dtype = dtype_of(pass);
    const double next = i + 1 < passes.size() ? passes[i + 1].start : 1e300;
    for (const TorchOp& step : events.optimizer_steps)
      if (step.start >= pass.end && step.start < next)
        trace.optimizer_step += microseconds(done(step.end) - done(step.start));
    trace.source =
        fmt::format("measured: torch profiler, last complete step; forward divided like backward{}",
                    batch > 0 ? "" : "; batch not known");
    validate(trace, source);
    return trace;
  }
  usage_error("{}: traceEvents: no step with its forward pass; profile whole training steps",
              source);
}

}  // namespace riffle::model
