// DiLoCo: tau local steps, then the distance travelled is averaged and an outer Nesterov step takes
// all workers along it from the last agreed weights.
// Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models",
// arXiv:2311.08105.
// Streaming (fragments, overlap): the model is cut into fragments, runs of layers of about the same
// size, that take turns, evenly spread over the round; a fragment travels under the next `overlap`
// steps, and every worker then keeps the share xi of what it holds by then:
//   x <- xi*x + (1-xi)*agreed.
// Douillard et al., "Streaming DiLoCo with overlapping communication", arXiv:2501.18512, where xi
// is called alpha and fragments may also be strided. Cost: T(M) every tau steps, nothing hidden;
// traffic falls to 1/tau. Streaming: a fragment stalls for max(0, T(M/fragments) - overlap*T_step),
// and the peak of traffic falls to 1/fragments.
#include "riffle/error.h"
#include "strategies/bucketing.h"
#include "strategies/builtin.h"
#include "strategies/weight_average.h"

namespace riffle::strategies {
namespace {

// Its outer momentum needs long to settle: from runs of 120 and 160 steps; docs/converge.md says
// how.
constexpr double kWorth = 0.89;

struct Turns {
  int tau = 0;
  int fragments = 1;
  int overlap = 0;
};

class Diloco : public Strategy {
 public:
  Diloco(const Turns& turns, Merge merge, bool mix_state)
      : turns_(turns), merge_(merge), mix_state_(mix_state) {}

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& /*cost*/,
                                   const World& /*world*/) const override {
    return make_buckets(trace, layers_by_share(trace, turns_.fragments));
  }
  [[nodiscard]] Program program(Step step, const World& world,
                                const BucketPlan& buckets) const override {
    Program program;
    const auto [tau, fragments, overlap] = turns_;
    const auto count = static_cast<Step>(buckets.size());  // a layer is never cut
    for (Step turn = 0; turn < count; ++turn)
      if (step % tau == (turn + 1) * tau / count - 1)
        average_round(program, {world.ranks()}, {buckets[static_cast<std::size_t>(turn)]},
                      overlap > 0 ? after_step(overlap) : before_forward(), merge_);
    if (mix_state_)
      add_state(program, overlap > 0 ? after_step(overlap) : before_step(1),
                overlap > 0 ? mix(merge_.xi) : replace());
    return program;
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override {
    // Of the steps that were taken meanwhile the share xi is kept, as of dasgd's interpolation.
    const double kept = 1 - (1 - merge_.xi) * turns_.overlap / turns_.tau;
    return {.period = turns_.tau,
            .staleness = turns_.overlap,
            .mixed = Payload::weight,
            .effective_step = kWorth * kept};
  }

 private:
  Turns turns_;
  Merge merge_;
  bool mix_state_;
};

Turns read_turns(const Options& options) {
  const Turns turns{.tau = static_cast<int>(options.integer("tau", 1)),
                    .fragments = static_cast<int>(options.integer("fragments", 1)),
                    .overlap = static_cast<int>(options.integer("overlap", 0))};
  if (turns.fragments > turns.tau)
    usage_error("{}: a round of tau={} steps has no turn for each of {}",
                options.where("fragments"), turns.tau, turns.fragments);
  if (turns.overlap > 0 && std::int64_t{turns.overlap} * turns.fragments >= turns.tau)
    usage_error(
        "{}: {} is not below tau/fragments = {}/{}: a fragment would still travel when the next "
        "one leaves",
        options.where("overlap"), turns.overlap, turns.tau, turns.fragments);
  return turns;
}

double read_share(const Options& options, int overlap) {
  if (overlap == 0 && options.given("xi"))
    usage_error("{}: only what is merged late (overlap above 0) leaves a local share",
                options.where("xi"));
  const double xi = options.number("xi", 0, 1);
  if (xi == 1) usage_error("{}: 1 would never mix", options.where("xi"));
  if (xi == 0)
    usage_error("{}: 0 would lose the steps that are taken under the exchange",
                options.where("xi"));
  return overlap == 0 ? 0 : xi;
}

std::unique_ptr<Strategy> make_diloco(const Options& options) {
  const Turns turns = read_turns(options);
  const Merge merge =
      outer(options.number("outer", 1e-6, 10), options.number("momentum", 0, 0.999999), true,
            read_share(options, turns.overlap));
  return std::make_unique<Diloco>(turns, merge, options.boolean("mix_state"));
}

}  // namespace

StrategyInfo diloco() {
  return {
      .name = "diloco",
      .summary = "tau local steps, then an outer Nesterov step along their mean",
      .paper = "arXiv:2311.08105, arXiv:2501.18512",
      .options = {{"tau", "20", "local steps between two outer steps"},
                  {"outer", "0.7", "learning rate of the outer step"},
                  {"momentum", "0.9", "momentum of the outer step"},
                  {"fragments", "1", "parts of the model that take turns in a round"},
                  {"overlap", "0", "steps that a part travels under, below tau/fragments"},
                  {"xi", "0.5", "the local share when it is merged, where it travels late"},
                  mix_state_option()},
      .page = {.idea = "`tau` local steps, then an outer optimizer (Nesterov momentum) takes "
                       "the mean of what the workers have moved as its gradient.\n\n"
                       "Streaming: with `fragments=F` the model is cut into F runs of layers of "
                       "about the same size that take turns, evenly spread over the round (a "
                       "model of fewer layers has fewer). With `overlap=K` a fragment travels "
                       "while the next K steps are computed; then the outer step is made from "
                       "the last agreed weights, and every worker keeps the share `xi` of what "
                       "it holds by then: x <- xi\\*x + (1-xi)\\*agreed. `wire=int8` sends a "
                       "quarter of the bytes; the paper sends 4 bits.",
               .when = "Long runs over very slow networks: it sends little, and needs many "
                       "outer steps before it pays. In short runs it is far behind. Streaming, "
                       "where waiting for the whole model at once is too long: nobody waits "
                       "while a fragment arrives within `overlap` steps."},
      .candidates = {"tau=50", "fragments=4,overlap=2"},
      .traffic = {ring_round_traffic(),
                  {.options = "fragments=4,overlap=2,algorithm=ring",
                   .bytes = "2(N-1)/N/tau",
                   .messages = "2(N-1)/tau*B"}},
      .make = make_diloco};
}

}  // namespace riffle::strategies
