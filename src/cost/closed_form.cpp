// The table of closed forms, one entry per algorithm. Sources: the table of the MG-WFBP paper and
// the message patterns, which a test compares entry by entry.
#include <bit>
#include <cmath>

#include "pattern/pattern.h"
#include "riffle/cost.h"
#include "riffle/error.h"

namespace riffle {
namespace {

// What reduce_scatter and all_gather share out of an all_reduce: the sum belongs to the first half.
ClosedForm half(ClosedForm whole, Collective collective) {
  // Serving is a scatter of what has moved and a gather of what is held.
  if (collective == Collective::all_reduce || collective == Collective::serve) return whole;
  return {.latencies = whole.latencies / 2,
          .bytes = whole.bytes / 2,
          .reduced = collective == Collective::reduce_scatter ? whole.reduced : 0,
          .messages_sent = whole.messages_sent / 2,
          .bytes_sent = whole.bytes_sent / 2};
}

ClosedForm recursive_doubling(double n) {
  const double power = std::bit_floor(static_cast<unsigned>(n));
  const double rounds = std::log2(power);
  const double extra = n - power;
  const double folds = extra > 0 ? 2 : 0;
  // Members without a partner outside do not wait for the fold. What they send meanwhile shares a
  // link with it, or with what comes after it: one vector more on the longest way. This is exact as
  // long as a vector takes no longer than a latency; beyond that other algorithms are better.
  const double shared = extra > 0 ? 1 : 0;
  // Outside members send once and hear once; their partners carry the fold's sum.
  const double messages = (power * rounds + 2 * extra) / n;
  return {.latencies = rounds + folds,
          .bytes = rounds + folds + shared,
          .reduced = rounds + folds / 2,
          .messages_sent = messages,
          .bytes_sent = messages};
}

}  // namespace

ClosedForm closed_form(Algorithm algorithm, Collective collective, int members) {
  if (members <= 1) return {};
  const double n = members;
  const double share = (n - 1) / n;
  if (collective == Collective::shift)
    return {.latencies = 1, .bytes = 1, .reduced = 1, .messages_sent = 1, .bytes_sent = 1};
  const double rounds = static_cast<double>(pattern::halving_skips(members).size()) - 1;
  const ClosedForm halving{.latencies = 2 * rounds,
                           .bytes = 2 * share,
                           .reduced = share,
                           .messages_sent = 2 * rounds,
                           .bytes_sent = 2 * share};
  switch (algorithm) {
    case Algorithm::ring:
      return half({.latencies = 2 * (n - 1),
                   .bytes = 2 * share,
                   .reduced = share,
                   .messages_sent = 2 * (n - 1),
                   .bytes_sent = 2 * share},
                  collective);
    case Algorithm::direct:
      return half({.latencies = 2,
                   .bytes = 2 * share,
                   .reduced = share,
                   .messages_sent = 2 * (n - 1),
                   .bytes_sent = 2 * share},
                  collective);
    case Algorithm::recursive_doubling:
      if (collective == Collective::all_reduce) return recursive_doubling(n);
      break;
    case Algorithm::tree:
      // Double binary trees, below no bound of an all-reduce: 2*beta + gamma.
      if (collective == Collective::all_reduce)
        return {.latencies = 2 * std::log2(n),
                .bytes = 2,
                .reduced = 1,
                .messages_sent = 2 * share,
                .bytes_sent = 2 * share};
      break;
    case Algorithm::automatic:
      throw InternalError("closed_form needs a named algorithm");
    case Algorithm::halving_doubling:
    case Algorithm::two_level:
      break;
  }
  return half(halving, collective);
}

}  // namespace riffle
