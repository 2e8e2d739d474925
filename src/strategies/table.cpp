#include <algorithm>

#include "base/text.h"
#include "riffle/error.h"
#include "riffle/strategy.h"
#include "strategies/builtin.h"

namespace riffle {
namespace {

// Sets what is the same for all strategies: the wire of what may be rounded, and the algorithm
// where none is named.
class WithCommonOptions : public Strategy {
 public:
  WithCommonOptions(std::unique_ptr<Strategy> inner, const Options& options)
      : inner_(std::move(inner)),
        wire_(options.wire()),
        feedback_(options.boolean("feedback")),
        algorithm_(options.algorithm()) {
    if (wire_ == Wire::f32 && options.given("feedback"))
      usage_error("{}: with wire=f32 nothing is lost", options.where("feedback"));
  }

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& cost,
                                   const World& world) const override {
    if (algorithm_ == Algorithm::automatic) return inner_->buckets(trace, cost, world);
    Cluster cluster = cost.cluster();
    cluster.algorithm = algorithm_;
    return inner_->buckets(trace, CostModel(std::move(cluster)), world);
  }
  [[nodiscard]] Program program(Step step, const World& world,
                                const BucketPlan& buckets) const override {
    Program program = inner_->program(step, world, buckets);
    for (Exchange& exchange : program.exchanges) {
      if (exchange.payload == Payload::gradient || exchange.payload == Payload::weight) {
        exchange.wire = wire_;
        exchange.feedback = feedback_;
      }
      if (exchange.algorithm == Algorithm::automatic) exchange.algorithm = algorithm_;
    }
    return program;
  }
  [[nodiscard]] Traits traits(const World& world) const override { return inner_->traits(world); }
  [[nodiscard]] Traits traits_with(const World& world, const BucketPlan& buckets) const override {
    return inner_->traits_with(world, buckets);
  }

 private:
  std::unique_ptr<Strategy> inner_;
  Wire wire_;
  bool feedback_;
  Algorithm algorithm_;
};

// Entries of another table have them already.
std::vector<OptionInfo> with_common(std::vector<OptionInfo> own) {
  if (std::ranges::find(own, "wire", &OptionInfo::key) != own.end()) return own;
  own.push_back({"wire", "f32|bf16|f16|int8", "what values are rounded to while they travel"});
  own.push_back(
      {"feedback", "true|false", "whether what rounding loses is sent later; false: to compare"});
  own.push_back({"algorithm", "auto|ring|halving-doubling|recursive-doubling|direct|two-level|tree",
                 "how a collective is done"});
  return own;
}

// Options that every strategy has, or that never make a step faster, are not worth a try.
bool is_worth_trying(const OptionInfo& option) {
  return option.key != "wire" && option.key != "feedback" && option.key != "algorithm" &&
         option.key != "mix_state";
}

}  // namespace

std::vector<std::string> StrategyInfo::specs() const {
  std::vector<std::string> list{name};
  for (const std::string& each : candidates) list.push_back(name + ":" + each);
  if (!candidates.empty()) return list;
  for (const OptionInfo& option : options)
    for (const std::string& word : option.words())
      if (is_worth_trying(option) && word != option.default_value())
        list.push_back(name + ":" + option.key + "=" + word);
  return list;
}

StrategyTable StrategyTable::builtin() {
  StrategyTable table;
#define RIFFLE_ADD(name) table.add(strategies::name());
  RIFFLE_BUILTIN_STRATEGIES(RIFFLE_ADD)
#undef RIFFLE_ADD
  return table;
}

void StrategyTable::add(StrategyInfo info) {
  if (std::ranges::find(infos_, info.name, &StrategyInfo::name) != infos_.end())
    usage_error("strategy {}: the name is taken", info.name);
  info.options = with_common(std::move(info.options));
  infos_.push_back(std::move(info));
}

const StrategyInfo& StrategyTable::info(std::string_view name) const {
  const auto found = std::ranges::find(infos_, name, &StrategyInfo::name);
  if (found != infos_.end()) return *found;
  std::vector<std::string> known;
  for (const StrategyInfo& info : infos_) known.push_back(info.name);
  throw UsageError(unknown_name("strategy", name, known));
}

NamedStrategy StrategyTable::make(std::string_view spec) const {
  const std::size_t colon = spec.find(':');
  const StrategyInfo& found = info(spec.substr(0, colon));
  const std::string_view text = colon == std::string_view::npos ? "" : spec.substr(colon + 1);
  const Options options(found.name, found.options, text);
  auto strategy = std::make_shared<WithCommonOptions>(found.make(options), options);
  return {found.name, options.all(), std::string(spec), std::move(strategy)};
}

}  // namespace riffle
