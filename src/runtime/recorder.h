// What a session measures: times of steps, waits, bytes, and the timeline where it is wanted.
#pragma once

#include <mutex>

#include "riffle/session.h"

namespace riffle::runtime {

// One exchange on this rank, from the turn of its lane to its end.
struct ExchangeRecord {
  Step step = 0;
  int lane = 0;
  Seconds time{};
};

// Any thread.
class Recorder {
 public:
  Recorder(Rank rank, bool timeline) : rank_(rank), keeps_timeline_(timeline), begin_(now()) {}

  [[nodiscard]] static Clock::time_point now() { return Clock::now(); }

  void exchange(const Exchange& exchange, Step step, Bytes sent, Clock::time_point start,
                Clock::time_point end = now());
  void wait(const Exchange& exchange, Step step, Clock::time_point start);
  void end_step();
  void consensus(double distance);

  // Steps from the next one on are counted anew, for lap().
  void begin_lap();
  // The mean time of a step since then, but for the first; nothing where there is none yet.
  [[nodiscard]] std::optional<Seconds> lap() const;

  // From now on keeps records of exchanges, for take_records().
  void keep_records();
  [[nodiscard]] std::vector<ExchangeRecord> take_records();
  // So far.
  [[nodiscard]] Seconds waited() const;

  [[nodiscard]] SessionStats stats() const;
  [[nodiscard]] Timeline timeline() const;
  [[nodiscard]] Clock::time_point begin() const { return begin_; }

 private:
  void add(EventKind kind, std::string name, int lane, Step step, Clock::time_point start,
           Clock::time_point end, Bytes bytes);

  Rank rank_;
  bool keeps_timeline_;
  Clock::time_point begin_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  Clock::time_point last_step_ = begin_;
  Step steps_ = 0;
  Seconds all_steps_{};  // without the first
  Step lap_from_ = 1;    // when so many steps had ended
  Clock::time_point lap_begin_ = begin_;
  Seconds waited_{};
  Bytes sent_;
  std::optional<double> consensus_;
  Timeline timeline_;
  bool keeps_records_ = false;
  std::vector<ExchangeRecord> records_;
};

}  // namespace riffle::runtime
