// What each worker still waits for: exchanges that are due, and updates postponed to their merge.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "riffle/program.h"

namespace riffle::simulator {

class Dues {
 public:
  // Exchanges are due fewer than `window` steps later.
  Dues(int workers, int buckets, int window)
      : workers_(workers),
        buckets_(buckets),
        window_(window),
        all_(kDuePoints * static_cast<std::size_t>(window) * workers, 0),
        by_bucket_(all_.size() * buckets, 0) {}

  // An exchange of `step` that the worker takes part in, or with -1 the end of one.
  void add(const Exchange& exchange, Step step, int worker, int count) {
    const std::size_t at = slot(exchange.due.point, step + exchange.due.steps, worker);
    all_[at] += count;
    std::uint8_t& here = by_bucket_[at * buckets_ + exchange.bucket];
    here = static_cast<std::uint8_t>(here + count);
  }
  // Exchanges due at a point of a step that are not there yet; of all buckets, or of one.
  [[nodiscard]] int left(DuePoint point, Step step, int worker) const {
    return all_[slot(point, step, worker)];
  }
  [[nodiscard]] int left(DuePoint point, Step step, int worker, int bucket) const {
    return by_bucket_[slot(point, step, worker) * buckets_ + bucket];
  }

  // The update of a bucket in `step` is made when its gradient is merged.
  void postpone(const Due& due, Step step, int worker, int bucket) {
    if (postponed_.empty()) postponed_.assign(by_bucket_.size(), 0);
    postpones_[static_cast<std::size_t>(due.point)] = true;
    postponed_[slot(due.point, step + due.steps, worker) * buckets_ + bucket] = 1;
  }
  // Whether updates were ever postponed to such a point.
  [[nodiscard]] bool postpones(DuePoint point) const {
    return postpones_[static_cast<std::size_t>(point)];
  }
  // Whether one is to be made here; once.
  bool take_postponed(DuePoint point, Step step, int worker, int bucket) {
    if (!postpones(point)) return false;
    char& flag = postponed_[slot(point, step, worker) * buckets_ + bucket];
    const bool was = flag != 0;
    flag = 0;
    return was;
  }

 private:
  static constexpr std::size_t kDuePoints = 3;

  [[nodiscard]] std::size_t slot(DuePoint point, Step step, int worker) const {
    const auto which = static_cast<std::size_t>(point) * window_ + step % window_;
    return which * workers_ + worker;
  }

  int workers_;
  int buckets_;
  int window_;
  // By point, step modulo window, worker, (bucket).
  std::vector<int> all_;
  std::vector<std::uint8_t> by_bucket_;
  std::vector<char> postponed_;  // likewise, if any
  std::array<bool, kDuePoints> postpones_{};
};

}  // namespace riffle::simulator
