#include "simulate/progress.h"

#include <algorithm>

namespace riffle::simulator {

double Progress::passed(int id, Step step, schedule::Point point, int bucket) const {
  const Worker& worker = workers_[id];
  if (step < worker.step || worker.phase == Phase::ended) return 0;  // long past
  switch (point) {
    case schedule::Point::gradient_ready:
      if (worker.phase == Phase::forward) return kUnknown;
      if (!worker.plan->by_bucket)
        return worker.backward_start + times_.ready[bucket] * worker.factor;
      if (worker.phase == Phase::backward &&
          (bucket > worker.cursor || (bucket == worker.cursor && !worker.at_ready)))
        return kUnknown;
      return ready_at_[place(id, bucket)];
    case schedule::Point::backward_done:
      return worker.phase == Phase::forward || worker.phase == Phase::backward
                 ? kUnknown
                 : worker.backward_end;
    case schedule::Point::stepped: {
      const double stepped = stepped_at_[place(id, bucket)];
      return stepped < 0 ? kUnknown : stepped;
    }
    default:
      return kUnknown;  // nothing starts elsewhere but at the step's end
  }
}

void Progress::clear_buckets(int worker) {
  if (!keeps_buckets()) return;
  std::fill_n(stepped_at_.begin() + static_cast<std::ptrdiff_t>(place(worker, 0)), buckets_,
              kUnknown);
}

void Progress::set_merged(int worker, int bucket, double time) {
  double& stepped = stepped_at_[place(worker, bucket)];
  if (stepped < 0) stepped = std::max(-stepped, time);
}

}  // namespace riffle::simulator
