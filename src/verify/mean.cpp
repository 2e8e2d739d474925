// The mean over all workers is kept. For each exchange by itself, in fractions: what all members
// together receive of one member's value is what that member gave. And for the whole, with what is
// in flight: the sum of random values is the same after every step, in residues.
#include <fmt/format.h>

#include <algorithm>

#include "riffle/random.h"
#include "verify/machine.h"

namespace riffle::verifier {
namespace {

struct Shares {
  std::vector<Rational> weights;
  std::vector<Rational> scales;  // of what is received; one for all merges but correct
};
Shares shares(const Exchange& exchange) {
  Shares made;
  for (int i = 0; i < exchange.group.size(); ++i) {
    made.weights.push_back(exchange.weights.empty() ? Rational(1)
                                                    : Rational::from(exchange.weights[i]));
    if (exchange.merge.kind != Merge::Kind::correct)
      made.scales.emplace_back(1);
    else
      made.scales.push_back(
          Rational::from(exchange.scales.empty() ? exchange.merge.scale : exchange.scales[i]));
  }
  return made;
}

// How much of the value of member j all members together receive; the mean is kept when it is what
// they give up of it.
struct Balance {
  Rational received;
  Rational given;
};
Balance balance(const Exchange& exchange, const Shares& of, const Rational& weight_sum,
                const Rational& scale_sum, int j) {
  const int n = exchange.group.size();
  if (exchange.collective == Collective::shift) {
    const int to = (j + exchange.shift) % n;
    const int from = (j + n - exchange.shift % n) % n;
    return {of.scales[j] * of.weights[j] / (of.weights[j] + of.weights[from]) +
                of.scales[to] * of.weights[j] / (of.weights[to] + of.weights[j]),
            of.scales[j]};
  }
  return {scale_sum * of.weights[j] / weight_sum, of.scales[j]};
}

// Equal weights and scales balance whatever they are.
bool uniform(const Exchange& exchange) {
  const auto all_equal = [](const std::vector<double>& values) {
    return std::ranges::adjacent_find(values, std::ranges::not_equal_to{}) == values.end();
  };
  return all_equal(exchange.weights) && all_equal(exchange.scales);
}

bool check_exchange(const Instance& at, std::vector<Problem>& problems) {
  const Exchange& exchange = *at.exchange;
  if (exchange.collective == Collective::all_gather || uniform(exchange)) return true;
  const Shares of = shares(exchange);
  Rational weight_sum;
  Rational scale_sum;
  for (const Rational& weight : of.weights) weight_sum = weight_sum + weight;
  for (const Rational& scale : of.scales) scale_sum = scale_sum + scale;
  for (int j = 0; j < exchange.group.size(); ++j) {
    const Balance each = balance(exchange, of, weight_sum, scale_sum, j);
    if (each.received == each.given) continue;
    add(problems,
        problem(Problem::Check::mean, at,
                fmt::format("the mean is not kept: rank {} gives {} of its value, the "
                            "group receives {}",
                            exchange.group.ranks()[j], each.given.value(), each.received.value())));
    return false;
  }
  return true;
}

Residue sum(const std::vector<Residue>& values) {
  Residue total;
  for (const Residue& value : values) total = total + value;
  return total;
}

bool check_whole(const Schedule& schedule, int bucket, std::vector<Problem>& problems) {
  Machine<Residue> machine(schedule, bucket, Payload::weight);
  Random random(61);
  std::vector<Residue> start;
  for (int i = 0; i < schedule.ranks.size(); ++i) start.emplace_back(random.next());
  const Residue expected = sum(start);
  machine.set_values(std::move(start));
  for (Step step = 0; step < schedule.window; ++step) {
    machine.advance();
    if (sum(machine.values()) == expected) continue;
    add(problems, {Problem::Check::mean, step, bucket, schedule.ranks,
                   "the mean of all weights is not the same after this step"});
    return false;
  }
  return true;
}

}  // namespace

void check_mean(const Schedule& schedule, Verification& result) {
  bool kept = true;
  bool outer = false;
  for (Step step = 0; step < schedule.length(); ++step)
    for (const Exchange& exchange : schedule.at(step).exchanges) {
      if (exchange.payload != Payload::weight && exchange.payload != Payload::gradient) continue;
      outer |= exchange.merge.kind == Merge::Kind::outer;
      kept &= check_exchange(instance(exchange, step), result.problems);
    }
  for (const int bucket : distinct_buckets(schedule))
    if (kept) kept = check_whole(schedule, bucket, result.problems);
  if (!outer || !kept) result.mean_preserved = kept;
}

}  // namespace riffle::verifier
