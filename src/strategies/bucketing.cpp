#include "strategies/bucketing.h"

#include <algorithm>

#include "strategies/merge.h"

namespace riffle {

std::vector<int> layers_by_size(const Trace& trace, Bytes size, Bytes first) {
  std::vector<int> layers_each;
  Bytes filled;
  int layers = 0;
  for (std::size_t i = trace.layers.size(); i-- > 0;) {
    filled += trace.bytes(trace.layers[i]);
    ++layers;
    if (filled < (layers_each.empty() ? first : size) && i > 0) continue;
    layers_each.push_back(layers);
    filled = Bytes{};
    layers = 0;
  }
  return layers_each;
}

std::vector<int> layers_by_share(const Trace& trace, int count) {
  const auto buckets = std::min(static_cast<std::size_t>(count), trace.layers.size());
  const double share = static_cast<double>(trace.bytes().count) / static_cast<double>(buckets);
  std::vector<int> layers_each;
  double filled = 0;  // of all buckets so far
  int layers = 0;
  for (std::size_t i = trace.layers.size(); i-- > 0;) {
    filled += static_cast<double>(trace.bytes(trace.layers[i]).count);
    ++layers;
    const std::size_t others = buckets - layers_each.size() - 1;
    const bool is_full = filled >= share * static_cast<double>(layers_each.size() + 1);
    if (i > 0 && (others == 0 || (!is_full && i != others))) continue;
    layers_each.push_back(layers);
    layers = 0;
  }
  return layers_each;
}

Bucketing::Bucketing(const Options& options) : how_(options.text("bucket")), wire_(options.wire()) {
  if (how_ != "optimal" && how_ != "layer" && how_ != "single") size_ = options.bytes("bucket");
}

BucketPlan Bucketing::buckets(const Trace& trace, const CostModel& cost, const World& world,
                              const Strategy& strategy) const {
  if (how_ == "single") return one_bucket(trace);
  if (how_ == "layer") return bucket_per_layer(trace);
  if (how_ != "optimal") return make_buckets(trace, layers_by_size(trace, size_, size_));

  constexpr int kSteps = 4;
  const Bytes all = wire_bytes(trace.bytes(), trace.dtype, wire_);
  const BucketPlan whole = one_bucket(trace);
  std::optional<Exchange> slowest;
  for (Step step = 0; step < kSteps; ++step)
    for (const Exchange& exchange : strategy.program(step, world, whole).exchanges)
      if (exchange.start == Start::bucket_stepped &&
          (!slowest || cost.time(*slowest, all) < cost.time(exchange, all)))
        slowest = exchange;
  if (!slowest) return one_bucket(trace);
  const Curve& curve =
      cost.curve(slowest->group, slowest->collective, slowest->algorithm, slowest->shift);
  return make_buckets(trace, merge_optimal(ready_layers(trace, wire_), curve));
}

OptionInfo bucket_option() {
  return {"bucket", "optimal|layer|single|SIZE",
          "how layers are merged into messages: best overlap, one each, all, or up to a size"};
}

}  // namespace riffle
