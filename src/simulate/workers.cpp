#include "simulate/workers.h"

#include <algorithm>

#include "riffle/error.h"
#include "riffle/random.h"

namespace riffle::simulator {
namespace {

// By how much the compute times of a worker's step differ from what they should be.
double noise(const Cluster& cluster, std::uint64_t seed, int worker, Step step) {
  if (cluster.jitter <= 0 && cluster.straggle.probability <= 0) return 1;
  Random random(seed * 1'000'003 + static_cast<std::uint64_t>(worker),
                static_cast<std::uint64_t>(step));
  double factor = 1;
  // A worker is never infinitely fast, however large the jitter.
  if (cluster.jitter > 0) factor = std::max(0.05, 1 + cluster.jitter * random.normal());
  if (random.uniform() < cluster.straggle.probability) factor *= cluster.straggle.factor;
  return factor;
}

}  // namespace

Workers::Workers(Setup setup, EventQueue& queue, Network& network)
    : setup_(std::move(setup)),
      queue_(queue),
      count_(setup_.cluster.size()),
      buckets_(static_cast<int>(setup_.buckets.size())),
      times_(setup_.trace, setup_.buckets, setup_.optimizer),
      progress_(count_, times_),
      dues_(count_, buckets_, setup_.window),
      record_(count_, setup_.trace, setup_.buckets, progress_),
      collectives_(network, queue, setup_.cluster.gamma.value, *this),
      lanes_(count_, progress_, steps_, record_, collectives_, queue) {
  for (int id = 0; id < count_; ++id) progress_[id].slow = setup_.cluster.workers[id].slow;
}

void Workers::start() {
  for (int id = 0; id < count_; ++id) {
    begin_step(id, 0);
    run(id, 0);
  }
}

// ---- steps

void Workers::add_step() {
  const auto plan = setup_.plan_of(steps_.next());
  lanes_.grow(plan->lanes);
  if (plan->by_bucket) progress_.keep_buckets();
  for (const PlannedExchange& each : plan->exchanges)
    if (each.exchange.due.steps >= setup_.window)
      usage_error("{}: due {} steps later, but the strategy promises at most {}",
                  print(each.exchange), each.exchange.due.steps, setup_.window - 2);
  steps_.add(plan);
}

void Workers::enter(int id, Step step) {
  while (steps_.next() <= step) add_step();
  ActiveStep& entered = steps_[step];
  ++entered.entered;
  const StepPlan& plan = *entered.plan;
  for (int i = plan.first[id * plan.lanes]; i < plan.first[(id + 1) * plan.lanes]; ++i)
    dues_.add(plan.exchanges[plan.items[i].exchange].exchange, step, id, 1);
  for (const auto& [bucket, due] : plan.postponed) dues_.postpone(due, step, id, bucket);
  progress_.clear_buckets(id);
  progress_[id].plan = entered.plan;
}

void Workers::begin_step(int id, double now) {
  Worker& worker = progress_[id];
  const Step step = ++worker.step;
  enter(id, step);
  record_.began(id, now);
  if (begun(step)) steps_.drop_finished(count_);
  worker.factor = worker.slow * noise(setup_.cluster, setup_.seed, id, step);
  worker.phase = Phase::forward;
  worker.cursor = buckets_ - 1;
  worker.clock = now;
}

// ---- the phases of a step

void Workers::run(int id, double now) {
  bool going = true;
  while (going) {
    switch (progress_[id].phase) {
      case Phase::forward:
        going = run_forward(id, now);
        if (!going) break;
        start_backward(id);
        lanes_.poke_all(id, now);
        break;
      case Phase::backward:
        going = run_backward(id, now);
        lanes_.poke_all(id, now);
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
        lanes_.poke_all(id, now);
        begin_step(id, now);
        break;
    }
  }
}

bool Workers::reached(int id, double now) {
  Worker& worker = progress_[id];
  if (worker.clock <= now) return true;
  queue_.push(worker.clock, Happening::compute, id);
  return false;
}

bool Workers::block(int id, double now) {
  progress_[id].blocked = true;
  progress_[id].blocked_since = now;
  return false;
}

bool Workers::must_wait(int id) const {
  const Worker& worker = progress_[id];
  switch (worker.phase) {
    case Phase::forward:
      return waits(DuePoint::before_forward, id, worker.cursor);
    case Phase::updates:
      return waits(DuePoint::before_step, id, worker.deferred.front());
    case Phase::optimizer:
      return waits(DuePoint::before_step, id);
    case Phase::merge:
      return waits(DuePoint::after_step, id);
    case Phase::backward:
    case Phase::ended:
      break;
  }
  return false;
}

bool Workers::run_forward(int id, double now) {
  Worker& worker = progress_[id];
  for (; worker.cursor >= 0; --worker.cursor) {
    const int bucket = worker.cursor;
    if (waits(DuePoint::before_forward, id, bucket))
      return reached(id, now) ? block(id, now) : false;
    if (dues_.take_postponed(DuePoint::before_forward, worker.step, id, bucket)) {
      const double update = times_.update[bucket] * worker.factor;
      record_.note(EventKind::optimizer, "update", bucket, id, worker.clock, worker.clock + update);
      worker.clock += update;
    }
    record_.note_layers(EventKind::forward, id, bucket, worker.clock);
    worker.clock += times_.forward[bucket] * worker.factor;
  }
  return true;
}

void Workers::start_backward(int id) {
  Worker& worker = progress_[id];
  worker.backward_start = worker.clock;
  worker.cursor = 0;
  worker.at_ready = false;
  if (worker.plan->by_bucket) {
    worker.phase = Phase::backward;
    return;
  }
  worker.phase = Phase::optimizer;
  for (int bucket = 0; bucket < buckets_; ++bucket)
    record_.note_layers(
        EventKind::backward, id, bucket,
        worker.backward_start + (times_.ready[bucket] - times_.backward[bucket]) * worker.factor);
  worker.backward_end = worker.backward_start + times_.all_backward * worker.factor;
  worker.clock = worker.backward_end;
}

bool Workers::run_backward(int id, double now) {
  Worker& worker = progress_[id];
  for (; worker.cursor < buckets_; ++worker.cursor) {
    const int bucket = worker.cursor;
    if (!worker.at_ready) {
      record_.note_layers(EventKind::backward, id, bucket, worker.clock);
      worker.clock += times_.backward[bucket] * worker.factor;
      progress_.set_ready(id, bucket, worker.clock);
      worker.at_ready = true;
    }
    const bool deferred = waits(DuePoint::before_step, id, bucket);
    const bool merges = waits(DuePoint::after_step, id, bucket);
    // What is not due yet may still arrive in time: look again then.
    if ((deferred || merges) && !reached(id, now)) return false;
    worker.at_ready = false;
    if (deferred)
      worker.deferred.push_back(bucket);
    else
      update_bucket(id, bucket);
  }
  worker.backward_end = worker.clock;
  worker.phase = Phase::updates;
  return true;
}

void Workers::update_bucket(int id, int bucket) {
  Worker& worker = progress_[id];
  const double start = worker.clock;
  if (!worker.plan->postpones(bucket)) worker.clock += times_.update[bucket] * worker.factor;
  record_.note(EventKind::optimizer, "update", bucket, id, start, worker.clock);
  progress_.set_stepped(id, bucket, worker.clock, waits(DuePoint::after_step, id, bucket));
}

bool Workers::run_updates(int id, double now) {
  Worker& worker = progress_[id];
  while (!worker.deferred.empty()) {
    if (!reached(id, now)) return false;
    const int bucket = worker.deferred.front();
    if (waits(DuePoint::before_step, id, bucket)) return block(id, now);
    worker.deferred.erase(worker.deferred.begin());
    update_bucket(id, bucket);
    lanes_.poke_all(id, now);
  }
  worker.clock += postponed_updates(id, DuePoint::before_step);
  worker.phase = Phase::merge;
  return true;
}

bool Workers::run_optimizer(int id, double now) {
  Worker& worker = progress_[id];
  if (!reached(id, now)) return false;
  if (waits(DuePoint::before_step, id)) return block(id, now);
  double update = times_.all_update;
  for (const auto& [bucket, due] : worker.plan->postponed) update -= times_.update[bucket];
  worker.clock =
      now + std::max(update, 0.0) * worker.factor + postponed_updates(id, DuePoint::before_step);
  record_.note(EventKind::optimizer, "optimizer", -1, id, now, worker.clock);
  worker.phase = Phase::merge;
  return true;
}

bool Workers::run_merge(int id, double now) {
  if (!reached(id, now)) return false;
  if (waits(DuePoint::after_step, id)) return block(id, now);
  if (const double late = postponed_updates(id, DuePoint::after_step); late > 0) {
    progress_[id].clock = now + late;
    record_.note(EventKind::optimizer, "optimizer", -1, id, now, now + late);
    if (!reached(id, now)) return false;
  }
  progress_[id].phase = Phase::ended;
  return true;
}

double Workers::postponed_updates(int id, DuePoint point) {
  if (!dues_.postpones(point)) return 0;
  double seconds = 0;
  for (int bucket = 0; bucket < buckets_; ++bucket)
    if (dues_.take_postponed(point, progress_[id].step, id, bucket))
      seconds += times_.update[bucket];
  return seconds * progress_[id].factor;
}

// ---- what ends sets free

void Workers::member_done(std::int64_t owner, int member, double now) {
  const Lanes::Finished finished = lanes_.finish(owner, member, now);
  const int id = finished.worker;
  const Exchange& exchange = *finished.exchange;
  dues_.add(exchange, finished.step, id, -1);
  Worker& worker = progress_[id];
  const int bucket = exchange.bucket;
  if (exchange.due.point == DuePoint::after_step && progress_.keeps_buckets() &&
      finished.step + exchange.due.steps == worker.step) {
    if (!waits(DuePoint::after_step, id, bucket)) progress_.set_merged(id, bucket, now);
    lanes_.poke_all(id, now);
  } else if (finished.chained) {
    lanes_.poke_all(id, now);
  } else {
    lanes_.poke(id, exchange.lane, now);
  }
  if (!worker.blocked || must_wait(id)) return;
  worker.blocked = false;
  record_.note(EventKind::wait, "bucket", bucket, id, worker.blocked_since, now);
  worker.clock = now;
  run(id, now);
}

}  // namespace riffle::simulator
