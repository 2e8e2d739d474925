#include "strategies/true_sizes.h"

#include "model/slowed_down.h"
#include "riffle/error.h"

namespace riffle {
namespace {

class TrueSizes : public Strategy {
 public:
  TrueSizes(std::shared_ptr<const Strategy> inner, std::vector<std::int64_t> elements,
            double shrink)
      : inner_(std::move(inner)), elements_(std::move(elements)), shrink_(shrink) {}

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& cost,
                                   const World& world) const override {
    if (trace.layers.size() != elements_.size())
      usage_error("{} true sizes for {} layers", elements_.size(), trace.layers.size());
    const Traits traits = inner_->traits(world);
    if (shrink_ != 1 && traits.mixed == Payload::gradient && !traits.exact)
      usage_error("factors of gradients do not shrink with the model; use --shrink 1");
    Trace whole = trace;
    for (std::size_t i = 0; i < elements_.size(); ++i) whole.layers[i].elements = elements_[i];
    World wide = world;
    wide.cluster = model::slowed_down(world.cluster, 1, 1 / shrink_);
    const CostModel true_cost(model::slowed_down(cost.cluster(), 1, 1 / shrink_));
    std::vector<int> layers_each;
    for (const Bucket& bucket : inner_->buckets(whole, true_cost, wide))
      layers_each.push_back(bucket.last - bucket.first + 1);
    return make_buckets(trace, layers_each);
  }
  [[nodiscard]] Program program(Step step, const World& world,
                                const BucketPlan& buckets) const override {
    return inner_->program(step, world, buckets);
  }
  [[nodiscard]] Traits traits(const World& world) const override { return inner_->traits(world); }
  [[nodiscard]] Traits traits_with(const World& world, const BucketPlan& buckets) const override {
    return inner_->traits_with(world, buckets);
  }

 private:
  std::shared_ptr<const Strategy> inner_;
  std::vector<std::int64_t> elements_;
  double shrink_;
};

}  // namespace

NamedStrategy with_true_sizes(NamedStrategy strategy, std::vector<std::int64_t> elements,
                              double shrink) {
  strategy.strategy = std::make_shared<TrueSizes>(strategy.strategy, std::move(elements), shrink);
  return strategy;
}

StrategyTable with_true_sizes(const StrategyTable& table, const std::vector<std::int64_t>& elements,
                              double shrink) {
  StrategyTable all;
  for (StrategyInfo info : table.all()) {
    info.make = [inner = info.make, elements, shrink](const Options& options) {
      return std::make_unique<TrueSizes>(inner(options), elements, shrink);
    };
    all.add(std::move(info));
  }
  return all;
}

}  // namespace riffle
