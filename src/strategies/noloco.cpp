// NoLoCo: tau local steps, then every worker meets one other, drawn at random, and takes an outer
// momentum step of its own; nothing is ever reduced over all.
// Kolehmainen et al., "NoLoCo: No-all-reduce Low Communication Training Method for Large Models",
// arXiv:2506.10911. Worker i keeps its own slow weights y and momentum m, and over its pair takes
//   m <- mu*m + a*mean(x - y) + c*(mean(y) - y);  y <- y + m;  x <- y.
// With c = a, as the authors' code has it, the two means add up to a*(mean(x) - y): one message of
// x each way is all that is needed, and with m = -a*U it is a heavy-ball step of rate a,
//   U <- mu*U + (y - mean(x));  y <- y - a*U;  x <- y.
// Momentum also drives workers apart. Of random pairs a projection P takes half of the distance of
// many workers, on average: from U' = mu*U + P*y, y' = y - a*U' the mean squares of y and U and
// their product follow each other linearly, and shrink where a < 2*(1 - mu^2).
// Pairs are drawn from a seed that all share, anew in every round; where the number of workers is
// odd three meet in one group.
// Cost: 2 latencies and M*beta every tau steps, whatever N is.
#include "riffle/error.h"
#include "strategies/builtin.h"
#include "strategies/grouping.h"
#include "strategies/rounds.h"
#include "strategies/weight_average.h"

namespace riffle::strategies {
namespace {

constexpr std::uint64_t kSeed = 2506'10911;

class Noloco : public Rounds {
 public:
  using Rounds::Rounds;

  [[nodiscard]] Traits traits(const World& world) const override {
    Traits traits = Rounds::traits(world);
    traits.round = traits.period;
    if (is_random(world)) traits.period = 0;
    return traits;
  }

 private:
  [[nodiscard]] Partition groups(Step round, const World& world) const override {
    const auto draw = static_cast<std::uint64_t>(is_random(world) ? round : 0);
    return random_groups(world.ranks(), 2, kSeed, draw);
  }
  // One pair, or one group of three, is no draw.
  static bool is_random(const World& world) { return group_count(world.size(), 2) > 1; }
};

std::unique_ptr<Strategy> make_noloco(const Options& options) {
  const double rate = options.number("outer", 1e-6, 2);
  const double momentum = options.number("momentum", 0, 0.999999);
  const double bound = 2 * (1 - momentum * momentum);
  if (rate >= bound)
    usage_error("{}: {} is not below 2*(1 - momentum^2) = {:.4g}: workers would drift apart",
                options.where("outer"), rate, bound);
  return std::make_unique<Noloco>(options, outer(rate, momentum, false));
}

}  // namespace

StrategyInfo noloco() {
  return {
      .name = "noloco",
      .summary = "tau local steps, then an outer momentum step with one random peer",
      .paper = "arXiv:2506.10911",
      .options = {{"tau", "50", "local steps between two meetings"},
                  {"outer", "0.7", "learning rate of the outer step, and pull to the peer"},
                  {"momentum", "0.5",
                   "momentum of the outer step; `outer` is below 2(1-momentum^2)"},
                  mix_state_option()},
      .page = {.idea =
                   "`tau` local steps; then every worker meets one other, drawn at random from "
                   "a seed that all share, and takes an outer step of its own from its own slow "
                   "weights y towards the mean of the pair: U <- momentum\\*U + (y - mean), "
                   "y <- y - outer\\*U, x <- y. Where the number of workers is odd, three meet "
                   "in one group.\n\n"
                   "The paper's step towards the pair's slow weights has a factor of its own; "
                   "as in the authors' code it is the outer learning rate, and then one message "
                   "of the weights each way is all that is sent.",
               .when = "Very many workers on a very slow network: a meeting costs two messages "
                       "whatever N is, and a slow worker holds up one other only. Workers never "
                       "agree exactly; `finish()` averages them."},
      .candidates = {"tau=20", "tau=100"},
      .traffic = {{.options = "algorithm=ring", .bytes = "1/tau", .messages = "2/tau*B"}},
      .make = make_noloco};
}

}  // namespace riffle::strategies
