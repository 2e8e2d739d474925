#include "simulate/record.h"

#include <fmt/format.h>

namespace riffle::simulator {

void Record::keep(Timeline& timeline, Rank ranks, Step from) {
  timeline_ = &timeline;
  ranks_ = ranks;
  from_ = from;
}

void Record::began(int worker, double now) {
  const Step step = progress_[worker].step;
  if (static_cast<Step>(begun_.size()) <= step) begun_.resize(static_cast<std::size_t>(step) + 1);
  ++begun_[step].workers;
  begun_[step].sum += now;
  if (worker == 0) {
    seen_[step].begin = now;
    seen_[step].plan = progress_[worker].plan;
  }
}

void Record::exchange_started(int worker, Step step, int exchange, double now) {
  if (worker == 0) seen_[step].exchanges.push_back({exchange, now, -1});
}

void Record::exchange_ended(int worker, Step step, int exchange, const PlannedExchange& what,
                            double start, double now) {
  if (worker == 0)
    for (SeenExchange& seen : seen_[step].exchanges)
      if (seen.exchange == exchange) seen.end = now;
  if (keeps(worker, step))
    timeline_->events.push_back(
        {EventKind::exchange, fmt::format("bucket {}", what.exchange.bucket), worker,
         what.exchange.lane, step, Seconds(start), Seconds(now), what.size});
}

void Record::note(EventKind kind, const char* what, int bucket, int worker, double start,
                  double end) {
  const Step step = progress_[worker].step;
  if (!keeps(worker, step) || end <= start) return;
  std::string name = bucket < 0 ? what : fmt::format("{} {}", what, bucket);
  timeline_->events.push_back(
      {kind, std::move(name), worker, 0, step, Seconds(start), Seconds(end), {}});
}

void Record::note_layers(EventKind kind, int worker, int bucket, double start) {
  if (!keeps(worker, progress_[worker].step)) return;
  const Bucket& layers = buckets_[bucket];
  const bool forward = kind == EventKind::forward;
  for (int i = 0; i <= layers.last - layers.first; ++i) {
    const Layer& layer = trace_.layers[forward ? layers.first + i : layers.last - i];
    const double end =
        start + (forward ? layer.forward : layer.backward).count() * progress_[worker].factor;
    note(kind, layer.name.c_str(), -1, worker, start, end);
    start = end;
  }
}

}  // namespace riffle::simulator
