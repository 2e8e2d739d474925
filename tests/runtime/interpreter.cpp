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
  Interpreter(int workers, const BucketPlan& buckets)
      : x_(static_cast<std::size_t>(workers), toy_start(1)),
        v_(x_.size(), Vector(x_[0].size())),
        agreed_(x_),
        momentum_(v_) {
    for (const Bucket& bucket : buckets) columns_.push_back(columns_of(bucket));
  }

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
    const Merge& merge = flight.exchange.merge;
    const double xi = merge.xi;
    const auto rank = static_cast<std::size_t>(flight.exchange.group.ranks()[i]);
    const Vector target = target_of(flight, i);
    const Vector& sent = flight.snapshot[rank];
    Vector& value = flight.exchange.payload == Payload::state ? v_[rank] : x_[rank];
    const double own = flight.exchange.scales.empty() ? merge.scale : flight.exchange.scales[i];
    const Columns columns = columns_.at(static_cast<std::size_t>(flight.exchange.bucket));
    for (std::size_t k = columns.begin; k < columns.end; ++k) switch (merge.kind) {
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
          double& u = momentum_[rank][k];
          u = merge.momentum * u + moved;
          agreed_[rank][k] -=
              merge.learning_rate * (merge.nesterov ? moved + merge.momentum * u : u);
          value[k] = xi * value[k] + (1 - xi) * agreed_[rank][k];
          break;
        }
      }
  }

  std::vector<Vector> x_;
  std::vector<Vector> v_;
  std::vector<Vector> agreed_;  // of outer optimizers
  std::vector<Vector> momentum_;
  std::vector<Columns> columns_;  // of the buckets
  std::vector<Flight> flights_;
};

}  // namespace

std::vector<Vector> interpret(const NamedStrategy& strategy, const World& world, int steps) {
  const BucketPlan buckets = toy_buckets(strategy, world);
  Interpreter workers(world.size(), buckets);
  const bool exact = strategy->traits(world).exact;
  for (Step t = 0; t < steps; ++t) workers.step(t, strategy->program(t, world, buckets), exact);
  return workers.weights(steps);
}

BucketPlan toy_buckets(const NamedStrategy& strategy, const World& world) {
  Trace trace;
  for (const std::int64_t size : kSizes)
    trace.layers.push_back({"layer", size, Seconds(1e-3), Seconds(2e-3)});
  return strategy->buckets(trace, CostModel(world.cluster), world);
}

BucketPlan any_bucket() {
  Trace trace;
  trace.layers.push_back({"all", 1, Seconds(1), Seconds(1)});
  return one_bucket(trace);
}

Columns columns_of(const Bucket& bucket) {
  Columns columns;
  for (int layer = 0; layer <= bucket.last; ++layer) {
    const auto size = static_cast<std::size_t>(kSizes[static_cast<std::size_t>(layer)]);
    (layer < bucket.first ? columns.begin : columns.end) += size;
  }
  columns.end += columns.begin;
  return columns;
}

}  // namespace riffle::test
