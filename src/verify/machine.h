// A schedule as a linear machine: the values of one payload of one bucket on all workers, at zero
// gradient, in any number type. Values are vectors over ranks (one coordinate of the model).
//
// Where all outer steps are of all workers, what they agree on is the same on all; which value that
// is is the outer optimizer's, and the mean stands for it. Else what each worker has agreed on and
// its momentum are part of the state.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "riffle/error.h"
#include "verify/checks.h"
#include "verify/rational.h"

namespace riffle::verifier {

template <typename T>
T exactly(double value) {
  if constexpr (std::is_same_v<T, double>)
    return value;
  else
    return T::from(value);
}

template <typename T>
class Machine {
 public:
  // `owner`: a coordinate belongs to the block of that member of each group, which matters between
  // a reduce_scatter and its all_gather.
  Machine(const Schedule& schedule, int bucket, Payload payload, int owner = 0)
      : owner_(owner), values_(schedule.ranks.size()) {
    for (const Program& program : schedule.programs) {
      Program own;
      auto& step = steps_.emplace_back();
      for (const Exchange& exchange : program.exchanges)
        if (exchange.bucket == bucket && exchange.payload == payload && exchange.group.size() > 1) {
          step.push_back(compile(exchange, schedule.ranks));
          own.add(exchange);
          keeps_outer_ |= exchange.merge.kind == Merge::Kind::outer &&
                          (exchange.group.size() < schedule.ranks.size() ||
                           exchange.collective != Collective::all_reduce);
        }
      const auto waits = schedule::waits_of(own);
      for (std::size_t i = 0; i < step.size(); ++i)
        for (const int earlier : waits[i]) step[i].after.push_back(step[earlier].exchange);
    }
    if (keeps_outer_) agreed_ = momentum_ = values_;
  }

  [[nodiscard]] const std::vector<T>& values() const { return values_; }
  // As a session begins: they are what was last agreed on.
  void set_values(std::vector<T> values) {
    values_ = std::move(values);
    if (keeps_outer_) agreed_ = values_;
  }

  // From the forward of one step, after its merges, to that of the next. The first call is step 0.
  void advance() {
    const auto& step = steps_[step_ % steps_.size()];
    for (Moment now = moment(step_, Point::gradient_ready);
         now < moment(step_ + 1, Point::before_forward); ++now) {
      merge_due(now);
      for (const Compiled& each : step)
        if (schedule::taken(*each.exchange, step_) == now) take(each);
    }
    ++step_;
    merge_due(moment(step_, Point::before_forward));
  }

  // All that the future depends on: what workers hold, and the snapshots in flight.
  [[nodiscard]] std::vector<T> state() const {
    std::vector<T> all = values_;
    all.insert(all.end(), agreed_.begin(), agreed_.end());
    all.insert(all.end(), momentum_.begin(), momentum_.end());
    for (const Flight& flight : flights_)
      all.insert(all.end(), flight.snapshot.begin(), flight.snapshot.end());
    return all;
  }
  void set_state(const std::vector<T>& all) {
    auto from = all.begin();
    const auto read = [&](std::vector<T>& into) {
      for (T& value : into) value = *from++;
    };
    read(values_);
    read(agreed_);
    read(momentum_);
    for (Flight& flight : flights_) read(flight.snapshot);
    RIFFLE_CHECK(from == all.end());
  }
  // So many values of each worker stand in front in the state: one after the other, over ranks.
  [[nodiscard]] std::size_t kinds() const { return keeps_outer_ ? 3 : 1; }

 private:
  struct Compiled {
    const Exchange* exchange;
    std::vector<const Exchange*> after;  // in flight still, but it starts from their results
    std::vector<int> places;             // of the members among the live ranks
    std::vector<T> weights;              // that add up to one
    std::vector<T> scales;
    T local{};  // the local share
    T rate{};   // of an outer optimizer
    T momentum{};
  };
  struct Flight {
    const Compiled* exchange;
    Step step;
    Moment due;
    std::vector<T> snapshot;  // per member
  };

  static Compiled compile(const Exchange& exchange, const Group& ranks) {
    const auto size = static_cast<std::size_t>(exchange.group.size());
    Compiled made{.exchange = &exchange,
                  .after = {},
                  .places = {},
                  .weights = {},
                  .scales = {},
                  .local = exactly<T>(exchange.merge.xi),
                  .rate = exactly<T>(exchange.merge.learning_rate),
                  .momentum = exactly<T>(exchange.merge.momentum)};
    for (const Rank rank : exchange.group) made.places.push_back(ranks.index_of(rank));
    const std::vector<double> weights =
        exchange.weights.empty() ? std::vector<double>(size, 1) : exchange.weights;
    const std::vector<double> scales =
        exchange.scales.empty() ? std::vector<double>(size, exchange.merge.scale) : exchange.scales;
    T sum{};
    for (const double weight : weights) sum = sum + exactly<T>(weight);
    const T share = exactly<T>(1) / sum;
    for (const double weight : weights) made.weights.push_back(exactly<T>(weight) * share);
    for (const double scale : scales) made.scales.push_back(exactly<T>(scale));
    return made;
  }

  void take(const Compiled& exchange) {
    Flight flight{&exchange, step_, schedule::merged(*exchange.exchange, step_), {}};
    if (exchange.after.empty()) {
      for (const int place : exchange.places) flight.snapshot.push_back(values_[place]);
    } else {
      std::vector<T> results = values_;
      for (const Flight& other : flights_)
        if (other.step == step_ &&
            std::ranges::find(exchange.after, other.exchange->exchange) != exchange.after.end())
          merge(other, results);
      for (const int place : exchange.places) flight.snapshot.push_back(results[place]);
    }
    flights_.push_back(std::move(flight));
  }

  void merge_due(Moment now) {
    for (const Flight& flight : flights_)
      if (flight.due == now) merge(flight, values_);
    std::erase_if(flights_, [&](const Flight& flight) { return flight.due == now; });
  }

  // What member i receives: the mean of all, of itself and one peer, or of nobody but the owner.
  [[nodiscard]] T received(const Flight& flight, std::size_t i, const T& mean,
                           const std::vector<T>& values) const {
    const Compiled& exchange = *flight.exchange;
    const std::size_t n = flight.snapshot.size();
    switch (exchange.exchange->collective) {
      case Collective::all_reduce:
      case Collective::serve:  // of workers in step
        return mean;
      case Collective::reduce_scatter:
        return i == owner_ % n ? mean : values[exchange.places[i]];
      case Collective::all_gather:
        return flight.snapshot[owner_ % n];
      case Collective::shift:
        break;
    }
    const std::size_t peer = (i + n - exchange.exchange->shift % n) % n;
    const T sum = exchange.weights[i] + exchange.weights[peer];
    return (exchange.weights[i] * flight.snapshot[i] +
            exchange.weights[peer] * flight.snapshot[peer]) /
           sum;
  }

  static T mixed(const Compiled& exchange, const T& value, const T& target) {
    return exchange.local * value + (exactly<T>(1) - exchange.local) * target;
  }

  // Where a worker's own outer step ends.
  T outer_step(const Compiled& exchange, int place, const T& target) {
    const T distance = agreed_[place] - target;
    momentum_[place] = exchange.momentum * momentum_[place] + distance;
    const T along = exchange.exchange->merge.nesterov
                        ? distance + exchange.momentum * momentum_[place]
                        : momentum_[place];
    agreed_[place] = agreed_[place] - exchange.rate * along;
    return agreed_[place];
  }

  void merge(const Flight& flight, std::vector<T>& values) {
    const Compiled& exchange = *flight.exchange;
    T mean{};
    for (std::size_t i = 0; i < flight.snapshot.size(); ++i)
      mean = mean + exchange.weights[i] * flight.snapshot[i];
    for (std::size_t i = 0; i < flight.snapshot.size(); ++i) {
      T& value = values[exchange.places[i]];
      const T target = received(flight, i, mean, values);
      switch (exchange.exchange->merge.kind) {
        case Merge::Kind::replace:
          value = target;
          break;
        case Merge::Kind::mix:
          value = mixed(exchange, value, target);
          break;
        case Merge::Kind::outer:
          value = mixed(exchange, value,
                        keeps_outer_ ? outer_step(exchange, exchange.places[i], target) : target);
          break;
        case Merge::Kind::correct:
          value = value + exchange.scales[i] * (target - flight.snapshot[i]);
          break;
      }
    }
  }

  std::size_t owner_;
  bool keeps_outer_ = false;
  std::vector<T> values_;
  std::vector<T> agreed_;  // of outer optimizers
  std::vector<T> momentum_;
  std::vector<std::vector<Compiled>> steps_;
  std::deque<Flight> flights_;
  Step step_ = 0;
};

}  // namespace riffle::verifier
