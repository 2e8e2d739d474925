#include "runtime/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/median.h"

namespace riffle::runtime {
namespace {

constexpr double kUnknown = -1;

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

void add(double& to, double time) {
  to = std::max(to, 0.0) + time;
}

// What is not known of a layer is as what is usual.
void fill_unknown(std::vector<double>& times) {
  double known = 0;
  double count = 0;
  for (const double time : times)
    if (time >= 0) {
      known += time;
      ++count;
    }
  for (double& time : times)
    if (time < 0) time = count > 0 ? known / count : 0;
}

}  // namespace

Profile::Profile(std::size_t layers, int steps)
    : layers_(layers), wanted_(std::max(steps, kEnough)), now_(empty()) {}

Profile::Times Profile::empty() const {
  return {std::vector<double>(layers_, kUnknown), std::vector<double>(layers_, kUnknown)};
}

// ---- the clock

void Profile::stop() {
  const std::scoped_lock lock(mutex_);
  if (!running_) return;
  spent_ += Clock::now() - since_;
  running_ = false;
}

void Profile::go_on() {
  const std::scoped_lock lock(mutex_);
  if (!in_pass_ || running_) return;
  since_ = Clock::now();
  running_ = true;
}

double Profile::take() {
  const Clock::time_point now = Clock::now();
  const Seconds time = spent_ + (running_ ? Seconds(now - since_) : Seconds{});
  spent_ = Seconds{};
  since_ = now;
  return time.count();
}

void Profile::begin_pass() {
  in_pass_ = running_ = true;
  spent_ = Seconds{};
  since_ = Clock::now();
}

// ---- points

void Profile::begin_forward() {
  const std::scoped_lock lock(mutex_);
  begin_pass();
  last_forward_ = -1;
}

void Profile::forward_done(int layer) {
  const std::scoped_lock lock(mutex_);
  if (!in_pass_) return;
  add(now_.forward.at(layer), take());
  last_forward_ = layer;
}

// What comes after the last layer with parameters is its own.
void Profile::end_forward() {
  const std::scoped_lock lock(mutex_);
  if (!in_pass_) return;
  if (last_forward_ >= 0)
    add(now_.forward[last_forward_], take());
  else
    now_.unassigned += take();
}

void Profile::gradient(int layer) {
  const std::scoped_lock lock(mutex_);
  now_.any = true;
  // Without a forward the first gradient has nothing to be measured from.
  if (!in_pass_) return begin_pass();
  add(now_.backward.at(layer), take());
}

void Profile::backward_done() {
  const std::scoped_lock lock(mutex_);
  in_pass_ = running_ = false;
}

void Profile::optimizer(Seconds took) {
  const std::scoped_lock lock(mutex_);
  now_.optimizer += took.count();
}

void Profile::end_step() {
  const std::scoped_lock lock(mutex_);
  in_pass_ = running_ = false;
  ++steps_;
  if (steps_ > kWarmUp && static_cast<int>(kept_.size()) < wanted_ && now_.any)
    kept_.push_back(now_);
  now_ = empty();
}

// ---- what was measured

bool Profile::is_wanted() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<int>(kept_.size()) < wanted_;
}

bool Profile::is_enough() const {
  const std::scoped_lock lock(mutex_);
  return steps_ >= kWarmUp + kEnough;
}

bool Profile::is_complete() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<int>(kept_.size()) == wanted_;
}

bool Profile::is_empty() const {
  const std::scoped_lock lock(mutex_);
  return kept_.empty();
}

double Profile::typical(std::vector<double> values) {
  std::erase_if(values, [](double value) { return value < 0; });
  return values.empty() ? kUnknown : median(std::move(values));
}

std::vector<double> Profile::typical_by_layer(std::vector<double> Times::* times) const {
  std::vector<double> all;
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    std::vector<double> values;
    for (const Times& each : kept_) values.push_back((each.*times)[layer]);
    all.push_back(typical(std::move(values)));
  }
  return all;
}

Trace Profile::measured(Trace trace) const {
  const std::scoped_lock lock(mutex_);
  if (kept_.empty()) return trace;
  std::vector<double> backward = typical_by_layer(&Times::backward);
  fill_unknown(backward);
  std::vector<double> forward = typical_by_layer(&Times::forward);
  std::vector<double> optimizer;
  std::vector<double> unassigned;
  for (const Times& each : kept_) {
    optimizer.push_back(each.optimizer);
    unassigned.push_back(each.unassigned);
  }
  std::string how;
  if (std::ranges::any_of(forward, [](double time) { return time >= 0; })) {
    for (double& time : forward) time = std::max(time, 0.0);
  } else {
    // Only its whole is known, or not even that.
    const double whole = typical(unassigned) > 0 ? typical(unassigned) : sum(backward) / 2;
    how = typical(unassigned) > 0 ? "; forward shared out as backward"
                                  : "; forward taken for half of backward";
    for (std::size_t i = 0; i < layers_; ++i)
      forward[i] = sum(backward) > 0 ? whole * backward[i] / sum(backward) : 0;
  }
  if (sum(forward) + sum(backward) <= 0) return trace;
  for (std::size_t i = 0; i < layers_; ++i) {
    trace.layers.at(i).forward = Seconds(forward[i]);
    trace.layers[i].backward = Seconds(backward[i]);
  }
  trace.optimizer_step = Seconds(typical(optimizer));
  trace.source = fmt::format("measured: medians of {} steps{}", kept_.size(), how);
  return trace;
}

}  // namespace riffle::runtime
