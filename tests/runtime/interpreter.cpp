#include "runtime/interpreter.h"

#include "riffle/error.h"

namespace riffle::test {
namespace {

struct Flight {
  Exchange exchange;
  Step due;
  std::vector<Vector> snapshot;  // of every worker
};

class Interpreter {
 public:
  explicit Interpreter(int workers)
      : x_(static_cast<std::size_t>(workers), toy_start(1)),
        v_(x_.size(), Vector(x_[0].size())),
        agreed_(x_),
        momentum_(v_) {}

  // `averaged`: everybody uses the mean of all gradients, as exact strategies promise.
  void step(Step t, const Program& program, bool averaged) {
    merge(t, DuePoint::before_forward);
    std::vector<Vector> gradients;
    for (std::size_t i = 0; i < x_.size(); ++i)
      gradients.push_back(toy_gradient(x_[i], static_cast<Rank>(i), t));
    if (averaged) gradients.assign(x_.size(), mean_of(gradients));
    start(t, program, Start::bucket_ready);
    start(t, program, Start::backward_done);
    merge(t, DuePoint::before_step);
    for (std::size_t i = 0; i < x_.size(); ++i)
      toy_update(x_[i], v_[i], gradients[i], 0, x_[i].size());
    merge(t, DuePoint::after_step);
    start(t, program, Start::bucket_stepped);
    start(t, program, Start::step_done);
  }

  // What the forward of step `t` would use.
  std::vector<Vector> weights(Step t) {
    merge(t, DuePoint::before_forward);
    return x_;
  }

 private:
  [[nodiscard]] static Vector mean_of(const std::vector<Vector>& all) {
    Vector mean(all[0].size());
    for (const Vector& each : all)
      for (std::size_t k = 0; k < mean.size(); ++k)
        mean[k] += each[k] / static_cast<double>(all.size());
    return mean;
  }

  void start(Step t, const Program& program, Start point) {
    for (const Exchange& each : program.exchanges) {
      if (each.start != point || each.payload == Payload::gradient || each.group.size() == 1)
        continue;
      flights_.push_back({each, t + each.due.steps, each.payload == Payload::state ? v_ : x_});
    }
  }

  void merge(Step t, DuePoint point) {
    const auto is_due = [&](const Flight& each) {
      return each.due == t && each.exchange.due.point == point;
    };
    for (const Flight& each : flights_)
      if (is_due(each))
        for (int i = 0; i < each.exchange.group.size(); ++i) join(each, i);
    std::erase_if(flights_, is_due);
  }

  // The weighted mean of the members whose values member `i` of the group receives.
  [[nodiscard]] static Vector target_of(const Flight& flight, int i) {
    const Exchange& exchange = flight.exchange;
    const int n = exchange.group.size();
    const bool shifts = exchange.collective == Collective::shift;
    // Served in step (ahead 0): what all have moved from the value they had in common.
    RIFFLE_CHECK(shifts || exchange.collective == Collective::all_reduce || exchange.ahead == 0);
    const int peer = (i + n - exchange.shift % n) % n;
    Vector target(flight.snapshot[0].size());
    double sum = 0;
    for (int j = 0; j < n; ++j) {
      const double weight = exchange.weights.empty() ? 1 : exchange.weights[j];
      const int times = shifts ? static_cast<int>(j == i) + static_cast<int>(j == peer) : 1;
      sum += weight * times;
      const Vector& from = flight.snapshot[exchange.group.ranks()[j]];
      for (std::size_t k = 0; k < target.size(); ++k) target[k] += weight * times * from[k];
    }
    for (double& value : target) value /= sum;
    return target;
  }

  void join(const Flight& flight, int i) {
    const auto& [kind, xi, scale, rate, momentum] = flight.exchange.merge;
    const auto rank = static_cast<std::size_t>(flight.exchange.group.ranks()[i]);
    const Vector target = target_of(flight, i);
    const Vector& sent = flight.snapshot[rank];
    Vector& value = flight.exchange.payload == Payload::state ? v_[rank] : x_[rank];
    const double own = flight.exchange.scales.empty() ? scale : flight.exchange.scales[i];
    for (std::size_t k = 0; k < value.size(); ++k) switch (kind) {
        case Merge::Kind::replace:
          value[k] = target[k];
          break;
        case Merge::Kind::mix:
          value[k] = xi * value[k] + (1 - xi) * target[k];
          break;
        case Merge::Kind::correct:
          value[k] += own * (target[k] - sent[k]);
          break;
        case Merge::Kind::outer: {
          const double moved = agreed_[rank][k] - target[k];
          momentum_[rank][k] = momentum * momentum_[rank][k] + moved;
          agreed_[rank][k] -= rate * (moved + momentum * momentum_[rank][k]);
          value[k] = agreed_[rank][k];
          break;
        }
      }
  }

  std::vector<Vector> x_;
  std::vector<Vector> v_;
  std::vector<Vector> agreed_;  // of outer optimizers
  std::vector<Vector> momentum_;
  std::vector<Flight> flights_;
};

}  // namespace

std::vector<Vector> interpret(const NamedStrategy& strategy, const World& world, int steps) {
  Interpreter workers(world.size());
  const BucketPlan buckets = any_bucket();
  const bool exact = strategy->traits(world).exact;
  for (Step t = 0; t < steps; ++t) workers.step(t, strategy->program(t, world, buckets), exact);
  return workers.weights(steps);
}

BucketPlan any_bucket() {
  Trace trace;
  trace.layers.push_back({"all", 1, Seconds(1), Seconds(1)});
  return one_bucket(trace);
}

}  // namespace riffle::test
