#include "simulate/workers.h"

#include <fmt/format.h>

#include <algorithm>

#include "riffle/error.h"
#include "riffle/random.h"

namespace riffle {
namespace {

constexpr int kPoints = 3;

}  // namespace

BucketTimes bucket_times(const Trace& trace, const BucketPlan& buckets, Seconds optimizer) {
  BucketTimes times;
  const auto all_bytes = static_cast<double>(trace.bytes().count);
  for (const Bucket& bucket : buckets) {
    double forward = 0;
    double backward = 0;
    for (int layer = bucket.first; layer <= bucket.last; ++layer) {
      forward += trace.layers[layer].forward.count();
      backward += trace.layers[layer].backward.count();
    }
    times.forward.push_back(forward);
    times.backward.push_back(backward);
    times.all_forward += forward;
    times.all_backward += backward;
    times.ready.push_back(times.all_backward);
    times.update.push_back(optimizer.count() * static_cast<double>(bucket.bytes.count) / all_bytes);
  }
  times.all_update = optimizer.count();
  return times;
}

Workers::Workers(Setup setup, EventQueue& queue, Network& network)
    : setup_(std::move(setup)),
      queue_(queue),
      collectives_(network, queue, setup_.cluster.gamma.value, *this),
      times_(bucket_times(setup_.trace, setup_.buckets, setup_.optimizer)),
      count_(setup_.cluster.size()),
      buckets_(static_cast<int>(setup_.buckets.size())),
      workers_(static_cast<std::size_t>(count_)) {
  const std::size_t slots = static_cast<std::size_t>(kPoints) * setup_.window * count_;
  due_total_.assign(slots, 0);
  due_.assign(slots * buckets_, 0);
  for (int id = 0; id < count_; ++id) workers_[id].slow = setup_.cluster.workers[id].slow;
}

void Workers::start() {
  for (int id = 0; id < count_; ++id) {
    begin_step(id, 0);
    run(id, 0);
  }
}

bool Workers::begun(Step step) const {
  return static_cast<Step>(begun_count_.size()) > step && begun_count_[step] == count_;
}

double Workers::mean_begin(Step step) const {
  return begun_sum_[step] / count_;
}

// ---- dues

std::size_t Workers::slot(DuePoint point, Step step, int worker) const {
  const auto which = static_cast<std::size_t>(point) * setup_.window + step % setup_.window;
  return which * count_ + worker;
}

int Workers::pending(DuePoint point, int worker, int bucket) const {
  return due_[slot(point, workers_[worker].step, worker) * buckets_ + bucket];
}

int Workers::pending(DuePoint point, int worker) const {
  return due_total_[slot(point, workers_[worker].step, worker)];
}

void Workers::add_due(const Exchange& exchange, Step step, int worker, int count) {
  const std::size_t at = slot(exchange.due.point, step + exchange.due.steps, worker);
  due_total_[at] += count;
  due_[at * buckets_ + exchange.bucket] =
      static_cast<std::uint8_t>(due_[at * buckets_ + exchange.bucket] + count);
}

// ---- steps

void Workers::enter(int id, Step step) {
  while (oldest_ + static_cast<Step>(active_.size()) <= step) {
    ActiveStep fresh;
    fresh.plan = setup_.plan_of(oldest_ + static_cast<Step>(active_.size()));
    fresh.collective.assign(fresh.plan->exchanges.size(), -1);
    if (fresh.plan->chained) fresh.done.assign(fresh.plan->items.size(), 0);
    fresh.left = static_cast<std::int64_t>(fresh.plan->items.size());
    if (fresh.plan->lanes > lanes_) {
      lanes_ = fresh.plan->lanes;
      lane_states_.resize(static_cast<std::size_t>(lanes_) * count_);
    }
    if (fresh.plan->stepped && stepped_at_.empty()) {
      ready_at_.assign(static_cast<std::size_t>(count_) * buckets_, kUnknown);
      stepped_at_ = ready_at_;
    }
    if (!fresh.plan->postponed.empty() && postponed_.empty())
      postponed_.assign(static_cast<std::size_t>(setup_.window) * count_ * buckets_, 0);
    for (const PlannedExchange& each : fresh.plan->exchanges)
      if (each.exchange.due.steps >= setup_.window)
        usage_error("{}: due {} steps later, but the strategy promises at most {}",
                    print(each.exchange), each.exchange.due.steps, setup_.window - 2);
    active_.push_back(std::move(fresh));
  }
  ActiveStep& entered = active(step);
  ++entered.entered;
  const StepPlan& plan = *entered.plan;
  for (int i = plan.first[id * plan.lanes]; i < plan.first[(id + 1) * plan.lanes]; ++i)
    add_due(plan.exchanges[plan.items[i].exchange].exchange, step, id, 1);
  for (const auto& [bucket, later] : plan.postponed) {
    const auto when = static_cast<std::size_t>((step + later) % setup_.window);
    postponed_[(when * count_ + id) * buckets_ + bucket] = 1;
  }
  if (!stepped_at_.empty())
    std::fill_n(stepped_at_.begin() + static_cast<std::ptrdiff_t>(id) * buckets_, buckets_,
                kUnknown);
  workers_[id].plan = entered.plan;
  if (id == 0) seen_[step].plan = entered.plan;
}

void Workers::drop_finished_steps() {
  while (!active_.empty() && active_.front().left == 0 && active_.front().entered == count_) {
    active_.pop_front();
    ++oldest_;
  }
}

void Workers::draw_noise(int id) {
  Worker& worker = workers_[id];
  const Cluster& cluster = setup_.cluster;
  worker.noise = 1;
  if (cluster.jitter <= 0 && cluster.straggle.probability <= 0) return;
  Random random(setup_.seed * 1'000'003 + static_cast<std::uint64_t>(id),
                static_cast<std::uint64_t>(worker.step));
  // A worker is never infinitely fast, however large the jitter.
  if (cluster.jitter > 0) worker.noise = std::max(0.05, 1 + cluster.jitter * random.normal());
  if (random.uniform() < cluster.straggle.probability) worker.noise *= cluster.straggle.factor;
}

void Workers::begin_step(int id, double now) {
  Worker& worker = workers_[id];
  const Step step = ++worker.step;
  if (static_cast<Step>(begun_count_.size()) <= step) {
    begun_count_.resize(static_cast<std::size_t>(step) + 1, 0);
    begun_sum_.resize(static_cast<std::size_t>(step) + 1, 0);
  }
  ++begun_count_[step];
  begun_sum_[step] += now;
  enter(id, step);
  if (id == 0) seen_[step].begin = now;
  if (begun_count_[step] == count_) drop_finished_steps();
  draw_noise(id);
  worker.factor = worker.slow * worker.noise;
  worker.phase = Phase::forward;
  worker.cursor = buckets_ - 1;
  worker.clock = now;
}

void Workers::run(int id, double now) {
  bool going = true;
  while (going) {
    switch (workers_[id].phase) {
      case Phase::forward:
        going = run_forward(id, now);
        if (!going) break;
        start_backward(id);
        poke_all(id, now);
        break;
      case Phase::backward:
        going = run_backward(id, now);
        poke_all(id, now);
        break;
      case Phase::updates:
        going = run_updates(id, now);
        break;
      case Phase::optimizer:
        going = run_optimizer(id, now);
        break;
      case Phase::merge:
        going = run_merge(id, now);
        break;
      case Phase::ended:
        // Snapshots of this step come before anything of the next.
        poke_all(id, now);
        begin_step(id, now);
        break;
    }
  }
}

bool Workers::reached(int id, double now) {
  Worker& worker = workers_[id];
  if (worker.clock <= now) return true;
  queue_.push(worker.clock, Happening::compute, id);
  return false;
}

bool Workers::block(int id, double now) {
  workers_[id].blocked = true;
  workers_[id].blocked_since = now;
  return false;
}

bool Workers::must_wait(int id) const {
  const Worker& worker = workers_[id];
  switch (worker.phase) {
    case Phase::forward:
      return pending(DuePoint::before_forward, id, worker.cursor) > 0;
    case Phase::updates:
      return pending(DuePoint::before_step, id, worker.deferred.front()) > 0;
    case Phase::optimizer:
      return pending(DuePoint::before_step, id) > 0;
    case Phase::merge:
      return pending(DuePoint::after_step, id) > 0;
    case Phase::backward:
    case Phase::ended:
      break;
  }
  return false;
}

bool Workers::take_postponed(int id, int bucket) {
  if (postponed_.empty()) return false;
  const auto when = static_cast<std::size_t>(workers_[id].step % setup_.window);
  char& flag = postponed_[(when * count_ + id) * buckets_ + bucket];
  const bool was = flag != 0;
  flag = 0;
  return was;
}

bool Workers::run_forward(int id, double now) {
  Worker& worker = workers_[id];
  for (; worker.cursor >= 0; --worker.cursor) {
    const int bucket = worker.cursor;
    if (pending(DuePoint::before_forward, id, bucket) > 0)
      return reached(id, now) ? block(id, now) : false;
    if (take_postponed(id, bucket)) {
      const double update = times_.update[bucket] * worker.factor;
      note(EventKind::optimizer, "update", bucket, id, worker.clock, worker.clock + update);
      worker.clock += update;
    }
    note_layers(EventKind::forward, id, bucket, worker.clock);
    worker.clock += times_.forward[bucket] * worker.factor;
  }
  return true;
}

void Workers::start_backward(int id) {
  Worker& worker = workers_[id];
  worker.backward_start = worker.clock;
  worker.cursor = 0;
  worker.at_ready = false;
  if (worker.plan->stepped) {
    worker.phase = Phase::backward;
    return;
  }
  worker.phase = Phase::optimizer;
  for (int bucket = 0; bucket < buckets_; ++bucket)
    note_layers(
        EventKind::backward, id, bucket,
        worker.backward_start + (times_.ready[bucket] - times_.backward[bucket]) * worker.factor);
  worker.backward_end = worker.backward_start + times_.all_backward * worker.factor;
  worker.clock = worker.backward_end;
}

bool Workers::run_backward(int id, double now) {
  Worker& worker = workers_[id];
  for (; worker.cursor < buckets_; ++worker.cursor) {
    const int bucket = worker.cursor;
    if (!worker.at_ready) {
      note_layers(EventKind::backward, id, bucket, worker.clock);
      worker.clock += times_.backward[bucket] * worker.factor;
      ready_at_[static_cast<std::size_t>(id) * buckets_ + bucket] = worker.clock;
      worker.at_ready = true;
    }
    const bool waits = pending(DuePoint::before_step, id, bucket) > 0;
    const bool merges = pending(DuePoint::after_step, id, bucket) > 0;
    // What is not due yet may still arrive in time: look again then.
    if ((waits || merges) && !reached(id, now)) return false;
    worker.at_ready = false;
    if (waits)
      worker.deferred.push_back(bucket);
    else
      update_bucket(id, bucket);
  }
  worker.backward_end = worker.clock;
  worker.phase = Phase::updates;
  return true;
}

// A bucket whose merges are outstanding is marked by its time below zero.
void Workers::update_bucket(int id, int bucket) {
  Worker& worker = workers_[id];
  const double start = worker.clock;
  worker.clock += times_.update[bucket] * worker.factor;
  note(EventKind::optimizer, "update", bucket, id, start, worker.clock);
  const bool merges = pending(DuePoint::after_step, id, bucket) > 0;
  stepped_at_[static_cast<std::size_t>(id) * buckets_ + bucket] =
      merges ? -worker.clock : worker.clock;
}

bool Workers::run_updates(int id, double now) {
  Worker& worker = workers_[id];
  while (!worker.deferred.empty()) {
    if (!reached(id, now)) return false;
    const int bucket = worker.deferred.front();
    if (pending(DuePoint::before_step, id, bucket) > 0) return block(id, now);
    worker.deferred.erase(worker.deferred.begin());
    update_bucket(id, bucket);
    poke_all(id, now);
  }
  worker.phase = Phase::merge;
  return true;
}

bool Workers::run_optimizer(int id, double now) {
  Worker& worker = workers_[id];
  if (!reached(id, now)) return false;
  if (pending(DuePoint::before_step, id) > 0) return block(id, now);
  double update = times_.all_update;
  for (const auto& [bucket, later] : worker.plan->postponed) update -= times_.update[bucket];
  worker.clock = now + std::max(update, 0.0) * worker.factor;
  note(EventKind::optimizer, "optimizer", -1, id, now, worker.clock);
  worker.phase = Phase::merge;
  return true;
}

bool Workers::run_merge(int id, double now) {
  if (!reached(id, now)) return false;
  if (pending(DuePoint::after_step, id) > 0) return block(id, now);
  workers_[id].phase = Phase::ended;
  return true;
}

void Workers::compute_event(int id, double now) {
  run(id, now);
}

// ---- what is shown

void Workers::record(Timeline& timeline, Rank ranks, Step from) {
  timeline_ = &timeline;
  recorded_ = ranks;
  record_from_ = from;
}

void Workers::note(EventKind kind, const char* what, int bucket, int id, double start, double end) {
  if (timeline_ == nullptr || id >= recorded_ || workers_[id].step < record_from_ || end <= start)
    return;
  std::string name = bucket < 0 ? what : fmt::format("{} {}", what, bucket);
  timeline_->events.push_back(
      {kind, std::move(name), id, 0, workers_[id].step, Seconds(start), Seconds(end), {}});
}

void Workers::note_layers(EventKind kind, int id, int bucket, double start) {
  if (timeline_ == nullptr || id >= recorded_ || workers_[id].step < record_from_) return;
  const Bucket& layers = setup_.buckets[bucket];
  const bool forward = kind == EventKind::forward;
  for (int i = 0; i <= layers.last - layers.first; ++i) {
    const Layer& layer = setup_.trace.layers[forward ? layers.first + i : layers.last - i];
    const double end =
        start + (forward ? layer.forward : layer.backward).count() * workers_[id].factor;
    note(kind, layer.name.c_str(), -1, id, start, end);
    start = end;
  }
}

std::string Workers::stuck() const {
  for (int id = 0; id < count_; ++id)
    for (int lane = 0; lane < lanes_; ++lane) {
      const Lane& state = lane_states_[static_cast<std::size_t>(lane) * count_ + id];
      if (!state.busy) continue;
      const StepPlan& plan = *active_[static_cast<std::size_t>(state.step - oldest_)].plan;
      const int item = plan.first[id * plan.lanes + lane] + state.position;
      return fmt::format("worker {} never finishes step {}: {}", id, state.step,
                         print(plan.exchanges[plan.items[item].exchange].exchange));
    }
  return "no worker can go on";
}

}  // namespace riffle
