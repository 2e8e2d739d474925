#include "runtime/recorder.h"

#include <fmt/format.h>

namespace riffle::runtime {
namespace {

// An exchange of no bucket is not of the program.
std::string name(const Exchange& exchange) {
  if (exchange.bucket < 0) return "sensing";
  return fmt::format("bucket{} {}", exchange.bucket, name_of(exchange.payload));
}

}  // namespace

void Recorder::add(EventKind kind, std::string name, int lane, Step step, Clock::time_point start,
                   Clock::time_point end, Bytes bytes) {
  if (!keeps_timeline_) return;
  timeline_.events.push_back({.kind = kind,
                              .name = std::move(name),
                              .rank = rank_,
                              .lane = lane,
                              .step = step,
                              .start = start - begin_,
                              .end = end - begin_,
                              .bytes = bytes});
}

void Recorder::exchange(const Exchange& exchange, Step step, Bytes sent, Clock::time_point start) {
  this->exchange(exchange, step, sent, start, now());
}

void Recorder::exchange(const Exchange& exchange, Step step, Bytes sent, Clock::time_point start,
                        Clock::time_point end) {
  const std::scoped_lock lock(mutex_);
  sent_ += sent;
  if (keeps_records_ && exchange.bucket >= 0)
    records_.push_back({step, exchange.lane, end - start});
  add(EventKind::exchange, name(exchange), exchange.lane, step, start, end, sent);
}

void Recorder::wait(const Exchange& exchange, Step step, Clock::time_point start) {
  const std::scoped_lock lock(mutex_);
  waited_ += now() - start;
  add(EventKind::wait, name(exchange), 0, step, start, now(), {});
}

void Recorder::end_step() {
  const std::scoped_lock lock(mutex_);
  const Clock::time_point at = now();
  if (steps_ > 0) all_steps_ += at - last_step_;
  last_step_ = at;
  ++steps_;
  if (steps_ == lap_from_) lap_begin_ = at;
}

void Recorder::begin_lap() {
  const std::scoped_lock lock(mutex_);
  lap_from_ = steps_ + 1;
}

std::optional<Seconds> Recorder::lap() const {
  const std::scoped_lock lock(mutex_);
  if (steps_ <= lap_from_) return std::nullopt;
  return Seconds(last_step_ - lap_begin_) / static_cast<double>(steps_ - lap_from_);
}

void Recorder::consensus(double distance) {
  const std::scoped_lock lock(mutex_);
  consensus_ = distance;
}

void Recorder::keep_records() {
  const std::scoped_lock lock(mutex_);
  keeps_records_ = true;
}

std::vector<ExchangeRecord> Recorder::take_records() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(records_, {});
}

Seconds Recorder::waited() const {
  const std::scoped_lock lock(mutex_);
  return waited_;
}

SessionStats Recorder::stats() const {
  const std::scoped_lock lock(mutex_);
  SessionStats stats;
  stats.steps = steps_;
  stats.consensus_distance = consensus_;
  if (steps_ == 0) return stats;
  const auto steps = static_cast<double>(steps_);
  if (steps_ > 1) stats.step_time = all_steps_ / (steps - 1);
  stats.exposed_communication = waited_ / steps;
  stats.bytes = Bytes{sent_.count / steps_};
  return stats;
}

Timeline Recorder::timeline() const {
  const std::scoped_lock lock(mutex_);
  return timeline_;
}

}  // namespace riffle::runtime
