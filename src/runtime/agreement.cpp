#include "runtime/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "base/json.h"
#include "riffle/error.h"
#include "runtime/sense.h"

namespace riffle::runtime {
namespace {

// All trained tensors as one element type, so that the bytes of a trace are those of the model.
DType widest(const ModelSpec& model) {
  DType dtype = model.parameters.front().dtype;
  for (const TensorSpec& parameter : model.parameters)
    if (size_of(parameter.dtype) > size_of(dtype)) dtype = parameter.dtype;
  return dtype;
}

void check_model(const ModelSpec& model) {
  if (model.parameters.empty()) usage_error("the model has no parameters to train");
  for (const auto* tensors : {&model.parameters, &model.buffers})
    for (const TensorSpec& tensor : *tensors) {
      if (tensor.elements < 1) usage_error("{}: has no elements", tensor.name);
      if (tensor.data == nullptr) usage_error("{}: has no memory", tensor.name);
    }
}

void check_trace(const Trace& trace, const ModelSpec& model) {
  if (trace.layers.size() != model.parameters.size())
    usage_error("the trace has {} layers, the model {} parameters; there must be one per parameter",
                trace.layers.size(), model.parameters.size());
}

// All ranks learn who differs, and from whom.
void check_alike(Exchanger& exchanger, bool alike, std::string_view what) {
  const Group& ranks = exchanger.ranks();
  std::vector<double> differs(static_cast<std::size_t>(ranks.size()), 0);
  if (!alike) differs[ranks.index_of(exchanger.rank())] = 1;
  exchanger.all_reduce(differs, Reduction::sum);
  const auto first = std::ranges::find(differs, 1);
  if (first != differs.end())
    usage_error("{} differs between rank {} and rank {}", what,
                ranks.ranks()[first - differs.begin()], ranks.ranks().front());
}

// The lowest rank's choices, as JSON.
Json choices(Exchanger& exchanger, const ModelSpec& model, const SessionOptions& options,
             const std::optional<Resumed>& resumed) {
  Json chosen{{"session", Clock::now().time_since_epoch().count()}};
  if (resumed) {
    chosen["cluster"] = resumed->cluster;
    chosen["trace"] = resumed->trace;
    chosen["layers_each"] = resumed->layers_each;
  } else {
    const Cluster cluster =
        options.cluster ? *options.cluster : exchanger.cluster(options.measure_network);
    chosen["cluster"] = to_json(cluster);
    chosen["trace"] =
        to_json(options.trace ? with_shapes(*options.trace, model) : modelled_trace(model));
    chosen["layers_each"] = Json::array();
  }
  const bool told = options.cluster || options.trace;
  chosen["overlap"] =
      told ? 1.0
           : overlap_share(exchanger.hosts(), exchanger.ranks().size(), options.compute_threads,
                           std::thread::hardware_concurrency());
  return chosen;
}

}  // namespace

void check_equal(Exchanger& exchanger, const std::string& text, std::string_view what) {
  check_alike(exchanger, broadcast(exchanger, text) == text, what);
}

std::string fingerprint(const ModelSpec& model) {
  std::string text;
  for (const TensorSpec& each : model.parameters)
    text += fmt::format("{} {} {} {}\n", each.name, each.elements, name_of(each.dtype),
                        fmt::join(each.shape, "x"));
  for (const TensorSpec& each : model.buffers)
    text += fmt::format("buffer {} {} {}\n", each.name, each.elements, name_of(each.dtype));
  return text;
}

void check_rounding(const ModelSpec& model, const schedule::Needs& needs) {
  if (!needs.rounds_gradients && !needs.rounds_weights) return;
  for (const TensorSpec& each : model.parameters)
    if (each.dtype != DType::f32)
      usage_error("{} is {}: only f32 is rounded while it travels; use wire=f32", each.name,
                  name_of(each.dtype));
}

Trace modelled_trace(const ModelSpec& model) {
  // A worker of moderate speed and batch: what counts is how times compare with sizes, until they
  // are measured.
  constexpr Seconds kPerElement{20e-9};
  constexpr Seconds kPerLayer{20e-6};
  Trace trace;
  trace.model = model.name;
  trace.dtype = widest(model);
  trace.source = "modelled: from the sizes";
  const std::int64_t unit = size_of(trace.dtype).count;
  for (const TensorSpec& each : model.parameters) {
    const std::int64_t bytes = each.elements * size_of(each.dtype).count;
    const Seconds backward = kPerLayer + kPerElement * static_cast<double>(each.elements);
    trace.layers.push_back({each.name, (bytes + unit - 1) / unit, backward / 2, backward, {}});
  }
  return with_shapes(std::move(trace), model);
}

Trace with_shapes(Trace trace, const ModelSpec& model) {
  for (std::size_t i = 0; i < std::min(trace.layers.size(), model.parameters.size()); ++i) {
    const bool same = trace.layers[i].elements == model.parameters[i].elements;
    if (same && trace.layers[i].shape.empty()) trace.layers[i].shape = model.parameters[i].shape;
  }
  return trace;
}

double overlap_share(int hosts, int ranks, int compute_threads, unsigned cores) {
  if (cores == 0 || hosts != 1) return 1;
  const double each = static_cast<double>(cores) / ranks;
  return std::clamp(each - compute_threads, 0.0, 1.0);
}

Trace overlapped(Trace trace, double share) {
  for (Layer& layer : trace.layers) {
    layer.forward *= share;
    layer.backward *= share;
  }
  return trace;
}

Agreement agree(Exchanger& exchanger, const NamedStrategy& strategy, const ModelSpec& model,
                const SessionOptions& options, const std::optional<Resumed>& resumed) {
  check_model(model);
  check_equal(exchanger, fingerprint(model), "the model");
  check_equal(exchanger, resumed ? std::to_string(resumed->step) : "none",
              "the step that is resumed");
  const int window = sensing_window(exchanger, *strategy.strategy, model, options);
  const Json chosen = choices(exchanger, model, options, resumed);
  const Json agreed = parse_json(broadcast(exchanger, chosen.dump()), "rank 0's choices");
  Cluster cluster = cluster_from_json(agreed["cluster"].get<std::string>(), "rank 0's cluster");
  if (cluster.size() != exchanger.ranks().size())
    usage_error("the cluster has {} workers, the world {} ranks", cluster.size(),
                exchanger.ranks().size());
  Agreement result{.world = World(std::move(cluster), {0, exchanger.ranks()}),
                   .trace = trace_from_json(agreed["trace"].get<std::string>(), "rank 0's trace"),
                   .session = agreed["session"].get<std::uint64_t>(),
                   .overlap = agreed["overlap"].get<double>(),
                   .step = resumed ? resumed->step : 0,
                   .layers_each = agreed["layers_each"].get<std::vector<int>>(),
                   .sensing_window = window,
                   .measured = resumed && resumed->measured};
  check_trace(result.trace, model);
  return result;
}

}  // namespace riffle::runtime
