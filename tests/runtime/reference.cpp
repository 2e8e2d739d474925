#include "runtime/reference.h"

#include <cmath>

#include "riffle/error.h"
#include "runtime/interpreter.h"

namespace riffle::test {
namespace {

using Matrix = std::vector<Vector>;  // rows: what each worker becomes

struct Workers {
  std::vector<Vector> x;
  std::vector<Vector> v;

  Workers(int n, Vector start)
      : x(static_cast<std::size_t>(n), start),
        v(static_cast<std::size_t>(n), Vector(start.size())) {}
  [[nodiscard]] std::size_t size() const { return x.size(); }
  void local_step(Step step) {
    for (std::size_t i = 0; i < size(); ++i)
      toy_update(x[i], v[i], toy_gradient(x[i], static_cast<Rank>(i), step), 0, x[i].size());
  }
};

std::vector<Vector> mixed(const Matrix& w, const std::vector<Vector>& x) {
  std::vector<Vector> result(x.size(), Vector(x[0].size()));
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j)
      for (std::size_t k = 0; k < x[0].size(); ++k) result[i][k] += w[i][j] * x[j][k];
  return result;
}

Matrix identity(std::size_t n) {
  Matrix w(n, Vector(n));
  for (std::size_t i = 0; i < n; ++i) w[i][i] = 1;
  return w;
}

// The mixing matrix of a partition: 1/|G| within a group.
Matrix matrix_of(const Partition& groups, std::size_t n) {
  Matrix w = identity(n);
  for (const Group& group : groups)
    for (const Rank i : group)
      for (const Rank j : group) w[i][j] = 1.0 / group.size();
  return w;
}

// x_i + scale_i * (target_i - snapshot_i)
void correct(std::vector<Vector>& x, const std::vector<Vector>& target,
             const std::vector<Vector>& snapshot, std::size_t i, double scale) {
  for (std::size_t k = 0; k < x[i].size(); ++k) x[i][k] += scale * (target[i][k] - snapshot[i][k]);
}

std::string option(const NamedStrategy& strategy, std::string_view key) {
  for (const auto& [name, value] : strategy.options)
    if (name == key) return value;
  throw InternalError("no such option");
}
int number(const NamedStrategy& strategy, std::string_view key) {
  return std::stoi(option(strategy, key));
}

// Mean gradients, one momentum for all.
void synchronous(Workers& all, int steps) {
  for (Step t = 0; t < steps; ++t) {
    Vector gradient(all.x[0].size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Vector own = toy_gradient(all.x[i], static_cast<Rank>(i), t);
      for (std::size_t k = 0; k < own.size(); ++k)
        gradient[k] += own[k] / static_cast<double>(all.size());
    }
    for (std::size_t i = 0; i < all.size(); ++i)
      toy_update(all.x[i], all.v[i], gradient, 0, gradient.size());
  }
}

void local_sgd(Workers& all, int steps, int tau, bool mix_state) {
  for (Step t = 0; t < steps; ++t) {
    all.local_step(t);
    if (t % tau != tau - 1) continue;
    const Matrix w(all.size(), Vector(all.size(), 1.0 / static_cast<double>(all.size())));
    all.x = mixed(w, all.x);
    if (mix_state) all.v = mixed(w, all.v);
  }
}

void diloco(Workers& all, int steps, const NamedStrategy& strategy) {
  const int tau = number(strategy, "tau");
  const double rate = std::stod(option(strategy, "outer"));
  const double momentum = std::stod(option(strategy, "momentum"));
  Vector agreed = all.x[0];
  Vector u(agreed.size());
  for (Step t = 0; t < steps; ++t) {
    all.local_step(t);
    if (t % tau != tau - 1 || all.size() == 1) continue;
    const Vector average = mean(all.x);
    for (std::size_t k = 0; k < agreed.size(); ++k) {
      const double delta = agreed[k] - average[k];
      u[k] = momentum * u[k] + delta;
      agreed[k] -= rate * (delta + momentum * u[k]);
    }
    all.x.assign(all.size(), agreed);
  }
}

// papers: u <- beta*u + (x_old - mean)/lr; x <- x_old - alpha*lr*u.
void slowmo(Workers& all, int steps, const NamedStrategy& strategy) {
  const int tau = number(strategy, "tau");
  const double alpha = std::stod(option(strategy, "outer"));
  const double beta = std::stod(option(strategy, "momentum"));
  Vector old = all.x[0];
  Vector u(old.size());
  for (Step t = 0; t < steps; ++t) {
    all.local_step(t);
    if (t % tau != tau - 1 || all.size() == 1) continue;
    const Vector average = mean(all.x);
    for (std::size_t k = 0; k < old.size(); ++k) {
      u[k] = beta * u[k] + (old[k] - average[k]) / kRate;
      old[k] -= alpha * kRate * u[k];
    }
    all.x.assign(all.size(), old);
  }
}

// m <- mu*m + a*mean(x - y) + a*(mean(y) - y) over the worker's pair; y <- y + m; x <- y.
void noloco(Workers& all, int steps, const NamedStrategy& strategy,
            const std::function<Partition(Step)>& pairs_at) {
  const double rate = std::stod(option(strategy, "outer"));
  const double momentum = std::stod(option(strategy, "momentum"));
  std::vector<Vector> slow = all.x;
  std::vector<Vector> m(all.size(), Vector(all.x[0].size()));
  for (Step t = 0; t < steps; ++t) {
    all.local_step(t);
    const std::vector<Vector> old = slow;
    for (const Group& pair : pairs_at(t)) {
      if (pair.size() < 2) continue;
      std::vector<Vector> moved;
      std::vector<Vector> agreed;
      for (const Rank j : pair) {
        agreed.push_back(old[j]);
        moved.push_back(all.x[j]);
        for (std::size_t k = 0; k < old[j].size(); ++k) moved.back()[k] -= old[j][k];
      }
      const Vector step = mean(moved);
      const Vector middle = mean(agreed);
      for (const Rank i : pair) {
        for (std::size_t k = 0; k < step.size(); ++k) {
          m[i][k] = momentum * m[i][k] + rate * step[k] + rate * (middle[k] - old[i][k]);
          slow[i][k] += m[i][k];
        }
        all.x[i] = slow[i];
      }
    }
  }
}

// Fragment p of P sends at its own offset in the round of tau steps and is merged `overlap` steps
// later: the outer step on the global copy, then x <- alpha*x + (1-alpha)*global.
void streaming(Workers& all, int steps, const NamedStrategy& strategy,
               const BucketPlan& fragments) {
  const int tau = number(strategy, "tau");
  const int overlap = number(strategy, "overlap");
  const double rate = std::stod(option(strategy, "outer"));
  const double momentum = std::stod(option(strategy, "momentum"));
  const double alpha = overlap > 0 ? std::stod(option(strategy, "xi")) : 0;
  const auto count = static_cast<int>(fragments.size());
  Vector global = all.x[0];
  Vector velocity(global.size());
  std::vector<Vector> sent(fragments.size());  // the workers' mean when the fragment left
  for (Step t = 0; t < steps; ++t) {
    all.local_step(t);
    for (int p = 0; p < count && all.size() > 1; ++p) {
      const Step offset = (p + 1) * tau / count - 1;
      const auto part = columns_of(fragments[static_cast<std::size_t>(p)]);
      Vector& mean_sent = sent[static_cast<std::size_t>(p)];
      if (overlap == 0 && t % tau == offset) mean_sent = mean(all.x);
      if (t >= offset + overlap && (t - offset - overlap) % tau == 0)
        for (std::size_t k = part.begin; k < part.end; ++k) {
          const double delta = global[k] - mean_sent[k];
          velocity[k] = momentum * velocity[k] + delta;
          global[k] -= rate * (delta + momentum * velocity[k]);
          for (Vector& x : all.x) x[k] = alpha * x[k] + (1 - alpha) * global[k];
        }
      if (overlap > 0 && t % tau == offset) mean_sent = mean(all.x);
    }
  }
}

void dasgd(Workers& all, int steps, const NamedStrategy& strategy) {
  const int tau = number(strategy, "tau");
  const int delay = number(strategy, "delay");
  const bool mixes = option(strategy, "merge") == "mix";
  const double xi = std::stod(option(strategy, "xi"));
  std::vector<Vector> snapshot;
  Step taken = -1;
  for (Step t = 0; t < steps; ++t) {
    all.local_step(t);
    if (taken >= 0 && t == taken + delay && all.size() > 1) {
      const std::vector<Vector> average(all.size(), mean(snapshot));
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (!mixes) correct(all.x, average, snapshot, i, 1);
        for (std::size_t k = 0; mixes && k < all.x[i].size(); ++k)
          all.x[i][k] = xi * all.x[i][k] + (1 - xi) * average[i][k];
      }
    }
    if (t % tau == tau - 1) {
      snapshot = all.x;
      taken = t;
    }
  }
}

// Half of the own, half of the worker's that is 1, 2, 4, ... places back.
Matrix one_peer(std::size_t n, Step step) {
  int rounds = 1;
  while ((1U << rounds) < n) ++rounds;
  const std::size_t back = (std::size_t{1} << (step % rounds)) % n;
  Matrix w(n, Vector(n));
  for (std::size_t i = 0; i < n; ++i) {
    w[i][i] += 0.5;
    w[i][(i + n - back) % n] += 0.5;
  }
  return w;
}

// The groups of a step, as the strategy's own tests check them against the papers.
Partition groups_at(const NamedStrategy& strategy, const World& world, const BucketPlan& buckets,
                    Step step, int lane) {
  Partition groups;
  for (const Exchange& each : strategy->program(step, world, buckets).exchanges)
    if (each.bucket == 0 && each.lane == lane && each.payload == Payload::weight)
      groups.push_back(each.group);
  return groups;
}

// Weights are multiplied by a matrix in every step, before or after it.
void mixing(Workers& all, int steps, const NamedStrategy& strategy,
            const std::function<Matrix(Step)>& matrix_at) {
  const bool adapt_first = option(strategy, "order") == "adapt-then-combine";
  const bool mix_state = option(strategy, "mix_state") == "true";
  Matrix before = identity(all.size());
  for (Step t = 0; t < steps; ++t) {
    const Matrix w = matrix_at(t);
    if (adapt_first) {
      all.local_step(t);
      all.x = mixed(w, all.x);
      if (mix_state) all.v = mixed(w, all.v);
      continue;
    }
    // The gradient is that of the un-mixed weights; their mean arrives at the update.
    std::vector<Vector> gradients;
    for (std::size_t i = 0; i < all.size(); ++i)
      gradients.push_back(toy_gradient(all.x[i], static_cast<Rank>(i), t));
    all.x = mixed(before, all.x);
    if (mix_state) all.v = mixed(before, all.v);
    for (std::size_t i = 0; i < all.size(); ++i)
      toy_update(all.x[i], all.v[i], gradients[i], 0, all.x[i].size());
    before = w;
  }
}

void grouped(Workers& all, int steps, const NamedStrategy& strategy, const WorldAt& world_at,
             const BucketPlan& buckets) {
  mixing(all, steps, strategy, [&](Step t) {
    return matrix_of(groups_at(strategy, world_at(t), buckets, t, 0), all.size());
  });
}

// Racks average in every step; the delegates' snapshots from the start of a step come back d steps
// later, just before the rack's average, scaled by the number of members that share the delegate.
void delayed(Workers& all, int steps, const NamedStrategy& strategy, const WorldAt& world_at,
             const BucketPlan& buckets, int delay) {
  struct Crossing {
    Step due;
    Group delegates;
    std::vector<Vector> snapshot;
    Partition racks;  // of its step
  };
  std::vector<Crossing> crossings;
  for (Step t = 0; t < steps; ++t) {
    const Partition racks = groups_at(strategy, world_at(t), buckets, t, 0);
    for (const Group& delegates : groups_at(strategy, world_at(t), buckets, t, 1))
      if (delegates.size() > 1) crossings.push_back({t + delay, delegates, all.x, racks});
    all.local_step(t);
    for (const Crossing& each : crossings) {
      if (each.due != t) continue;
      const auto members = [&](Rank rank) {
        for (const Group& rack : each.racks)
          if (rack.contains(rank)) return static_cast<double>(rack.size());
        return 1.0;
      };
      double weights = 0;
      Vector average(all.x[0].size());
      for (const Rank rank : each.delegates) {
        weights += members(rank);
        for (std::size_t k = 0; k < average.size(); ++k)
          average[k] += members(rank) * each.snapshot[rank][k];
      }
      for (double& value : average) value /= weights;
      const std::vector<Vector> target(all.size(), average);
      for (const Rank rank : each.delegates)
        correct(all.x, target, each.snapshot, static_cast<std::size_t>(rank), members(rank));
    }
    all.x = mixed(matrix_of(racks, all.size()), all.x);
  }
}

}  // namespace

std::optional<std::vector<Vector>> reference(const std::string& spec, const World& world,
                                             int steps) {
  const NamedStrategy strategy = StrategyTable::builtin().make(spec);
  Workers all(world.size(), toy_start(1));
  const BucketPlan buckets = any_bucket();
  const auto always = [&](Step /*step*/) { return world; };
  const bool in_step = strategy.name == "asp" || strategy.name == "ssp";
  if (in_step && strategy->traits(world).timed) return std::nullopt;
  if (strategy->traits(world).exact || in_step)
    synchronous(all, steps);
  else if (strategy.name == "local-sgd")
    local_sgd(all, steps, number(strategy, "tau"), option(strategy, "mix_state") == "true");
  else if (strategy.name == "diloco" && option(strategy, "fragments") == "1" &&
           option(strategy, "overlap") == "0")
    diloco(all, steps, strategy);
  else if (strategy.name == "diloco" && option(strategy, "mix_state") == "false")
    streaming(all, steps, strategy, toy_buckets(strategy, world));
  else if (strategy.name == "slowmo")
    slowmo(all, steps, strategy);
  else if (strategy.name == "noloco")
    noloco(all, steps, strategy, [&](Step t) { return groups_at(strategy, world, buckets, t, 0); });
  else if (strategy.name == "dasgd")
    dasgd(all, steps, strategy);
  else if (strategy.name == "gossip")
    mixing(all, steps, strategy, [&](Step t) { return one_peer(all.size(), t); });
  else if (strategy.name == "ds-sync" && option(strategy, "delay") != "auto" &&
           number(strategy, "delay") > 0 && world.racks().size() > 1)
    delayed(all, steps, strategy, always, buckets, number(strategy, "delay"));
  else if (strategy.name == "ds-sync" || strategy.name == "sesgd")
    grouped(all, steps, strategy, always, buckets);
  else
    return std::nullopt;
  return all.x;
}

std::vector<Vector> ds_sync_reference(const std::string& spec, const WorldAt& world_at, int steps) {
  const NamedStrategy strategy = StrategyTable::builtin().make(spec);
  Workers all(world_at(0).size(), toy_start(1));
  if (number(strategy, "delay") > 0)
    delayed(all, steps, strategy, world_at, any_bucket(), number(strategy, "delay"));
  else
    grouped(all, steps, strategy, world_at, any_bucket());
  return all.x;
}

double norm(const Vector& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

double distance(const Vector& a, const Vector& b) {
  Vector difference(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  return norm(difference) / norm(b);
}

Vector mean(const std::vector<Vector>& all) {
  Vector average(all[0].size());
  for (const Vector& each : all)
    for (std::size_t k = 0; k < average.size(); ++k)
      average[k] += each[k] / static_cast<double>(all.size());
  return average;
}

}  // namespace riffle::test
