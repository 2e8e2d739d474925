// SESGD: groups of g average their weights each step, and the groups change like the digits of a
// shuffle-exchange network, so that all workers hold the exact mean after log_g N steps.
// Yang, "Shuffle-Exchange Brings Faster", arXiv:2007.00433.
// Cost per step: an all-reduce over g workers, 2(g-1) latencies on a ring instead of 2(N-1).
#include "riffle/error.h"
#include "strategies/bucketing.h"
#include "strategies/builtin.h"
#include "strategies/grouping.h"
#include "strategies/memo.h"
#include "strategies/weight_average.h"

namespace riffle::strategies {
namespace {

constexpr std::uint64_t kSeed = 2007'00433;

class Sesgd : public Strategy {
 public:
  explicit Sesgd(const Options& options)
      : group_(options.text("group") == "auto" ? 0 : static_cast<int>(options.integer("group", 2))),
        random_(options.choice("schedule") == "random"),
        every_(options.integer("every", 1)),
        mixing_(weight_mixing(options)),
        bucketing_(options) {}

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& cost,
                                   const World& world) const override {
    return bucketing_.buckets(trace, cost, world, *this);
  }
  [[nodiscard]] Program program(Step step, const World& world,
                                const BucketPlan& buckets) const override {
    const Step round = step / every_;
    Program program;
    if (random(world)) {
      average_weights(
          program,
          random_groups(world.ranks(), size(world), kSeed, static_cast<std::uint64_t>(round)),
          buckets, mixing_);
    } else {
      const auto all = rounds(world);
      average_weights(program, (*all)[round % static_cast<Step>(all->size())], buckets, mixing_);
    }
    return program;
  }
  [[nodiscard]] Traits traits(const World& world) const override {
    const int period =
        random(world) ? 0 : static_cast<int>(rounds(world)->size()) * static_cast<int>(every_);
    return {.period = period, .staleness = mixing_.staleness(), .mixed = Payload::weight};
  }

 private:
  [[nodiscard]] int size(const World& world) const {
    return std::min(group_ == 0 ? default_group(world.size()) : group_, world.size());
  }
  // One group of all is no draw.
  [[nodiscard]] bool random(const World& world) const {
    return random_ && group_count(world.size(), size(world)) > 1;
  }
  [[nodiscard]] std::shared_ptr<const std::vector<Partition>> rounds(const World& world) const {
    return rounds_.of(world.ranks(), [&] { return digit_rounds(world.ranks(), size(world)); });
  }

  int group_;  // 0: by the number of workers
  bool random_;
  Step every_;
  WeightMixing mixing_;
  Bucketing bucketing_;
  Memo<std::vector<Partition>, Group> rounds_;
};

}  // namespace

StrategyInfo sesgd() {
  return {
      .name = "sesgd",
      .summary = "small groups average weights; groups change like digits, exact in log_g N",
      .paper = "arXiv:2007.00433",
      .options = {{"group", "auto", "workers in a group; auto: a divisor of N near sqrt(N)"},
                  {"schedule", "digits|random", "how groups change"},
                  {"every", "1", "steps that groups stay the same"},
                  order_option(),
                  bucket_option(),
                  mix_state_option()},
      .page =
          {.idea =
               "Small groups average their weights every step, and groups change like the digits "
               "of a number: with N = g^k workers, workers that differ in digit t meet in step t, "
               "so k steps without learning give exact consensus. Other N use mixed "
               "radix.\n\nWeights are mixed, in one of two orders. `adapt-then-combine` updates "
               "and averages bucket by bucket while backward still runs. `combine-then-adapt` lets "
               "the average travel under the whole next step; it hides more, works with clipping "
               "and mixed precision as it is, and halves the usable learning rate.",
           .when = "The first choice among strategies that mix weights: on MNIST with 16 workers "
                   "and iid data accuracy equals bsp's. For data that differ between workers keep "
                   "adapt-then-combine."},
      .candidates = {"group=2", "group=8", "schedule=random", "order=combine-then-adapt",
                     "group=2,order=combine-then-adapt"},
      .traffic = {{.options = "algorithm=ring", .bytes = "2(g-1)/g", .messages = "2(g-1)*B"},
                  {.options = "schedule=random,algorithm=ring",
                   .bytes = "2(g-1)/g",
                   .messages = "2(g-1)*B"}},
      .make = [](const Options& options) { return std::make_unique<Sesgd>(options); }};
}

}  // namespace riffle::strategies
