// DS-Sync: workers form groups that average their weights independently; the groups are shuffled
// every step, so that nobody waits for everybody. pattern=grid: rows, then columns of a near-square
// grid. pattern=bottleneck: groups follow the racks; rotating delegates meet across the slow links
// (bottleneck.h), and with a delay even they do not wait for them.
// Wang et al., arXiv:2007.03298, v1 (2020) and v2 (2022); delay and its scaled correction are ours.
// Cost per step: grid: an all-reduce over about sqrt(N). bottleneck: max(T_slow over the R
// delegates, T_fast over K-1 in a rack); with a delay of d T_fast over K, and T_slow spread over
// d+1 steps.
#include <algorithm>

#include "riffle/error.h"
#include "strategies/bottleneck.h"
#include "strategies/bucketing.h"
#include "strategies/builtin.h"
#include "strategies/grouping.h"
#include "strategies/memo.h"
#include "strategies/weight_average.h"

namespace riffle::strategies {
namespace {

constexpr int kAutomatic = -1;

class DsSync : public Strategy {
 public:
  DsSync(bool bottleneck, int delay, const Options& options)
      : bottleneck_(bottleneck),
        delay_(delay),
        mixing_(weight_mixing(options)),
        wire_(options.wire()),
        bucketing_(options) {}

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& cost,
                                   const World& world) const override {
    return bucketing_.buckets(trace, cost, world, *this);
  }
  [[nodiscard]] Program program(Step step, const World& world,
                                const BucketPlan& buckets) const override {
    const int delay = delay_steps(world, buckets);
    const auto all = phases(world, delay);
    const Phase& phase = (*all)[step % static_cast<Step>(all->size())];
    Program program;
    if (delay > 0) {
      Program inside;
      average_weights(inside, phase.groups, buckets, mixing_);
      if (!phase.delegates.empty()) add_crossing(program, phase, buckets, delay);
      std::ranges::move(inside.exchanges, std::back_inserter(program.exchanges));
      return program;
    }
    Partition groups = phase.groups;
    if (!phase.delegates.empty()) groups.push_back(phase.delegates);
    average_weights(program, groups, buckets, mixing_);
    return program;
  }
  [[nodiscard]] Traits traits(const World& world) const override { return traits_with(world, {}); }
  [[nodiscard]] Traits traits_with(const World& world, const BucketPlan& buckets) const override {
    const int delay = delay_steps(world, buckets);
    return {.period = static_cast<int>(phases(world, delay)->size()),
            .staleness = std::max(delay, mixing_.staleness()),
            .mixed = Payload::weight,
            .rotation = bottleneck_ && only_rotates(world) ? delay + 1 : 0};
  }

 private:
  [[nodiscard]] int delay_steps(const World& world, const BucketPlan& buckets) const {
    if (!bottleneck_ || world.racks().size() == 1) return 0;
    if (delay_ != kAutomatic) return delay_;
    return *automatic_.of(world, buckets, [&] { return automatic_delay(world, buckets, wire_); });
  }
  [[nodiscard]] std::shared_ptr<const std::vector<Phase>> phases(const World& world,
                                                                 int delay) const {
    return phases_.of(world, delay, [&] {
      if (delay > 0) return delayed_phases(world, delay);
      if (bottleneck_) return delegate_phases(world);
      std::vector<Phase> grid;
      for (Partition& groups : grid_rounds(world.ranks()))
        grid.push_back({.delegates = {}, .weights = {}, .groups = std::move(groups)});
      return grid;
    });
  }

  // What the delegates hold after the last step's average in the rack, on a lane of its own.
  static void add_crossing(Program& program, const Phase& phase, const BucketPlan& buckets,
                           int delay) {
    const bool equal = std::ranges::adjacent_find(phase.weights, std::ranges::not_equal_to{}) ==
                       phase.weights.end();
    for (const Bucket& bucket : buckets)
      program.add({.bucket = bucket.id,
                   .payload = Payload::weight,
                   .group = phase.delegates,
                   .weights = equal ? std::vector<double>{} : phase.weights,
                   .scales = equal ? std::vector<double>{} : phase.weights,
                   .lane = 1,
                   .start = Start::bucket_ready,
                   .due = after_step(delay),
                   .merge = correct(equal ? phase.weights.front() : 1)});
  }

  bool bottleneck_;
  int delay_;
  WeightMixing mixing_;
  Wire wire_;
  Bucketing bucketing_;
  Memo<int, World, BucketPlan> automatic_;
  Memo<std::vector<Phase>, World, int> phases_;
};

std::unique_ptr<Strategy> make_ds_sync(const Options& options) {
  const bool bottleneck = options.choice("pattern") == "bottleneck";
  const bool adapt_first = options.choice("order") == "adapt-then-combine";
  if (options.text("delay") == "auto")
    return std::make_unique<DsSync>(bottleneck, adapt_first ? kAutomatic : 0, options);
  const auto delay = static_cast<int>(options.integer("delay", 0));
  if (delay > 0 && !bottleneck)
    usage_error("{}: only pattern=bottleneck has slow links to delay", options.where("delay"));
  if (delay > 0 && !adapt_first)
    usage_error("{}: a delay needs order=adapt-then-combine", options.where("delay"));
  return std::make_unique<DsSync>(bottleneck, delay, options);
}

}  // namespace

StrategyInfo ds_sync() {
  return {
      .name = "ds-sync",
      .summary = "independent groups average weights, shuffled every step around slow links",
      .paper = "arXiv:2007.03298",
      .options = {{"pattern", "grid|bottleneck", "rows and columns, or racks and delegates"},
                  {"delay", "auto|0|D", "steps that the exchange between racks may take"},
                  order_option(),
                  bucket_option(),
                  mix_state_option()},
      .page =
          {.idea =
               "Divide and shuffle: workers form independent groups that average weights; groups "
               "are reshuffled every step so that what one group learns reaches all. Groups never "
               "wait for each other.\n\n`pattern=grid`: workers on a grid, rows and columns in "
               "turn. `pattern=bottleneck`: racks average inside; rotating delegates carry the "
               "averages across the slow links. With a delay, delegates merge what crosses the "
               "slow link some steps later by the delta rule, so nobody waits for it.",
           .when = "Racks, sites or clouds joined by a slow link: `pattern=bottleneck`. A flat "
                   "network: `pattern=grid`, which equals sesgd with two digits. The paper's "
                   "extended weight averaging is an option of the session, for every strategy: "
                   "`swa=True` of `riffle.sync`, `riffle train --swa`.",
           .more = "## While training\n\n`pattern=bottleneck` needs to know the racks. Without a "
                   "given cluster, on several hosts, a session finds racks and slow hosts itself "
                   "and goes on watching: when an uplink or a host becomes slow or recovers, all "
                   "workers change to new groups (and with `delay=auto` to another delay) at the "
                   "same step, and the log says what was seen and what changed "
                   "([runtime](../runtime.md#sensing)). `sense=False` switches it off.",
           .drawn = {"pattern=bottleneck"}},
      .candidates = {"pattern=grid,order=combine-then-adapt", "pattern=bottleneck",
                     "pattern=bottleneck,delay=0", "pattern=bottleneck,delay=2",
                     "pattern=bottleneck,delay=0,order=combine-then-adapt"},
      .traffic = {{.options = "algorithm=ring", .bytes = "2(g-1)/g", .messages = "2(g-1)*B"},
                  {.options = "pattern=bottleneck,delay=0,algorithm=ring",
                   .bytes = "(R*2(R-1)/R + (N-R)*2(K-2)/(K-1))/N",
                   .messages = "(R*2(R-1) + (N-R)*2(K-2))/N*B"},
                  {.options = "pattern=bottleneck,delay=3,algorithm=ring",
                   .bytes = "2(K-1)/K + 2(R-1)/R*R/N/(delay+1)",
                   .messages = "(2(K-1) + 2(R-1)*R/N/(delay+1))*B"}},
      .make = make_ds_sync};
}

}  // namespace riffle::strategies
