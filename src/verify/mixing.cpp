// How fast workers agree: the factor by which disagreement shrinks per step, and the step count
// after which all hold the same. Gradients that reach everybody leave nothing to agree on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "riffle/random.h"
#include "verify/machine.h"
#include "verify/spectrum.h"

namespace riffle::verifier {
namespace {

struct Mixing {
  double rate = 1;
  std::optional<int> consensus;
};

std::vector<Residue> random_values(int count, std::uint64_t seed) {
  Random random(seed);
  std::vector<Residue> values;
  values.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) values.emplace_back(random.next());
  return values;
}

bool all_equal(const std::vector<Residue>& values) {
  return std::ranges::adjacent_find(values, std::ranges::not_equal_to{}) == values.end();
}

bool has(const Schedule& schedule, Payload payload) {
  return std::ranges::any_of(schedule.programs, [&](const Program& program) {
    return std::ranges::find(program.exchanges, payload, &Exchange::payload) !=
           program.exchanges.end();
  });
}

// Whether in every step every worker's update of the bucket uses the same gradient.
bool gradients_agree(const Schedule& schedule, int bucket) {
  for (const Program& program : schedule.programs) {
    const Schedule one({program}, true, schedule.ranks, schedule.buckets);
    for (const int owner : {0, 1}) {
      Machine<Residue> machine(one, bucket, Payload::gradient, owner);
      machine.set_values(random_values(schedule.ranks.size(), 7));
      machine.advance();
      if (!all_equal(machine.values())) return false;
    }
  }
  return true;
}

// The first step count from which on all hold the same, from any start.
std::optional<int> steps_to_consensus(const Schedule& schedule, int bucket) {
  const Step settle = schedule.window;
  const Step limit = schedule.periodic ? 3 * settle + 64 : settle;
  Machine<Residue> machine(schedule, bucket, Payload::weight);
  machine.set_values(random_values(schedule.ranks.size(), 11));
  Step unequal = 0;
  for (Step step = 0; step < limit; ++step) {
    machine.advance();
    if (!all_equal(machine.values())) unequal = step + 1;
  }
  if (unequal + settle > limit && unequal > 0) return {};
  return static_cast<int>(unequal) + 1;
}

// The mean of a kind of value from its own, that of the first from what is in flight.
void subtract_means(Vector& state, std::size_t workers, std::size_t kinds) {
  Vector means;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    const auto first = state.begin() + static_cast<std::ptrdiff_t>(kind * workers);
    means.push_back(std::accumulate(first, first + static_cast<std::ptrdiff_t>(workers), 0.0) /
                    static_cast<double>(workers));
  }
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] -= i < kinds * workers ? means[i / workers] : means.front();
}

// Of one period's product on what is left when all agree, with what is in flight.
double periodic_rate(const Schedule& schedule, int bucket) {
  const auto workers = static_cast<std::size_t>(schedule.ranks.size());
  Machine<double> machine(schedule, bucket, Payload::weight);
  const Step warm = (schedule.window + schedule.length() - 1) / schedule.length();
  for (Step step = 0; step < warm * schedule.length(); ++step) machine.advance();
  const std::size_t dimension = machine.state().size();
  const auto map = [&](const Vector& from) {
    Machine<double> run = machine;
    Vector state = from;
    subtract_means(state, workers, machine.kinds());
    run.set_state(state);
    for (Step step = 0; step < schedule.length(); ++step) run.advance();
    state = run.state();
    subtract_means(state, workers, machine.kinds());
    return state;
  };
  return std::pow(spectral_radius(map, dimension), 1.0 / static_cast<double>(schedule.length()));
}

// Groups drawn afresh, each draw for so many steps.
struct Draws {
  Step steps = 0;
  double groups = 0;
};

// Where every exchange of the sample is a plain mean and every step has as many groups. Draws that
// happen to repeat only lengthen a run of equal programs, so the runs' common divisor is the true
// length.
std::optional<Draws> draws(const Schedule& schedule, int bucket) {
  std::optional<Draws> found;
  Step run = 1;
  for (Step step = 0; step < schedule.length(); ++step) {
    const Program& program = schedule.at(step);
    double groups = 0;
    for (const Exchange& exchange : program.exchanges) {
      if (exchange.bucket != bucket || exchange.payload != Payload::weight) continue;
      const bool mean = exchange.merge.kind == Merge::Kind::replace || exchange.merge == correct();
      if (!mean || exchange.collective != Collective::all_reduce || !exchange.weights.empty() ||
          exchange.due.steps > 1)
        return {};
      groups += 1;
    }
    if (groups == 0 || (found && found->groups != groups)) return {};
    if (!found) {
      found = {0, groups};
    } else if (program == schedule.at(step - 1)) {
      ++run;
    } else {
      found->steps = std::gcd(found->steps, run);
      run = 1;
    }
  }
  if (found && found->steps == 0) found->steps = run;
  return found;
}

// m groups drawn uniformly leave (m-1)/(N-1) of the mean square, whatever their sizes: the mean of
// a projection of rank m over all permutations.
double drawn_rate(const Draws& found, int workers) {
  return std::pow((found.groups - 1) / (workers - 1), 0.5 / static_cast<double>(found.steps));
}

// Any other random schedule: the measured root of the mean square over the sample.
double sampled_rate(const Schedule& schedule, int bucket) {
  constexpr int kVectors = 32;
  const auto workers = static_cast<std::size_t>(schedule.ranks.size());
  const auto square = [&](Vector values) {
    subtract_means(values, workers, 1);
    return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
  };
  Random random(23);
  double start = 0;
  double end = 0;
  for (int v = 0; v < kVectors; ++v) {
    Machine<double> machine(schedule, bucket, Payload::weight);
    Vector values(workers);
    for (double& value : values) value = random.normal();
    start += square(values);
    machine.set_values(values);
    for (Step step = 0; step < schedule.length(); ++step) machine.advance();
    end += square(machine.values());
  }
  return std::pow(end / start, 0.5 / static_cast<double>(schedule.length()));
}

// By how many steps workers may be apart; nothing where there is no bound.
std::optional<int> most_ahead(const Schedule& schedule, int bucket) {
  int most = 0;
  for (const Program& program : schedule.programs)
    for (const Exchange& exchange : program.exchanges) {
      if (exchange.bucket != bucket || exchange.collective != Collective::serve ||
          exchange.group.size() < 2)
        continue;
      if (exchange.ahead < 0) return std::nullopt;
      most = std::max(most, exchange.ahead);
    }
  return most;
}

Mixing mixing_of(const Schedule& schedule, int bucket) {
  if (gradients_agree(schedule, bucket)) return {0, 1};
  Mixing mixing;
  mixing.consensus = steps_to_consensus(schedule, bucket);
  if (mixing.consensus) {
    const auto more = most_ahead(schedule, bucket);
    mixing.consensus = more ? std::optional(*mixing.consensus + *more) : std::nullopt;
    mixing.rate = 0;
  } else if (schedule.periodic) {
    mixing.rate = periodic_rate(schedule, bucket);
  } else {
    const auto found = draws(schedule, bucket);
    mixing.rate =
        found ? drawn_rate(*found, schedule.ranks.size()) : sampled_rate(schedule, bucket);
  }
  return mixing;
}

// Ranks that meet, directly or through others, in any step.
std::vector<Group> circles(const Schedule& schedule, int bucket) {
  const int n = schedule.ranks.size();
  std::vector<int> root(static_cast<std::size_t>(n));
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  };
  for (const Program& program : schedule.programs)
    for (const Exchange& exchange : program.exchanges)
      if (exchange.bucket == bucket && exchange.payload == Payload::weight)
        for (const Rank rank : exchange.group)
          root[find(schedule.ranks.index_of(rank))] =
              find(schedule.ranks.index_of(exchange.group.ranks().front()));
  std::vector<std::vector<Rank>> members(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) members[find(i)].push_back(schedule.ranks.ranks()[i]);
  std::vector<Group> found;
  for (auto& each : members)
    if (!each.empty()) found.emplace_back(std::move(each));
  return found;
}

Problem not_mixing(const Schedule& schedule, int bucket, double rate) {
  if (!has(schedule, Payload::weight))
    return {Problem::Check::mixing, 0, bucket, schedule.ranks,
            has(schedule, Payload::gradient)
                ? "gradients differ between groups and weights are never averaged: workers drift "
                  "apart forever"
                : "nothing is exchanged: workers drift apart forever"};
  const std::vector<Group> apart = circles(schedule, bucket);
  if (apart.size() > 1)
    return {Problem::Check::mixing, 0, bucket, apart.front(),
            fmt::format("never meet any of the other {} ranks, in no step",
                        schedule.ranks.size() - apart.front().size())};
  return {Problem::Check::mixing, 0, bucket, schedule.ranks,
          fmt::format("disagreement does not shrink: {:.4g} times per step", rate)};
}

}  // namespace

void check_mixing(const Schedule& schedule, Verification& result) {
  double rate = 0;
  std::optional<int> consensus = 1;
  for (const int bucket : distinct_buckets(schedule)) {
    const Mixing mixing = mixing_of(schedule, bucket);
    if (mixing.rate > 1 - 1e-9) add(result.problems, not_mixing(schedule, bucket, mixing.rate));
    rate = std::max(rate, mixing.rate);
    consensus = consensus && mixing.consensus
                    ? std::optional(std::max(*consensus, *mixing.consensus))
                    : std::nullopt;
  }
  result.mixing_rate = rate;
  result.steps_to_consensus = consensus;
}

}  // namespace riffle::verifier
