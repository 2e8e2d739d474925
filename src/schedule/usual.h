// What is usual of a number that comes window by window, and whether it has changed. Pure: the
// same numbers give the same answer on every rank.
//
// What is usual is the median of the first windows. A change is a factor, beyond kFactor and beyond
// what the number has wavered by so far, in kWindows windows in a row. A window that is twice as
// far off counts as two, unless the number has been so far off lately and come back. So a noisy
// number that stays what it is never alarms, and a calm one alarms soon.
#pragma once

#include <deque>
#include <optional>

#include "riffle/units.h"

namespace riffle::schedule {

class Usual {
 public:
  // By how much values must differ, as a factor and at all.
  static constexpr double kFactor = 1.5;
  static constexpr Seconds kNoise = microseconds(100);
  // In so many windows in a row.
  static constexpr int kWindows = 3;
  // From so many windows on it is known what is usual; before, from kFew on, only what is far off
  // counts.
  static constexpr int kLearned = 5;
  static constexpr int kFew = 3;
  // So many windows decide what is usual.
  static constexpr int kDecided = 16;
  static constexpr double kFarOff = 3;
  // What nine of ten windows stayed within, so many times over, is noise; more often where it rests
  // on few windows: by kFewer over their number.
  static constexpr double kSpreads = 2;
  static constexpr double kFewer = 4;
  static constexpr int kRemembered = 64;
  // Windows that count as lately.
  static constexpr int kSteady = 1000;

  // Which way a number has to go to count.
  enum class Way { up, down };
  explicit Usual(Way way) : way_(way) {}

  // The value of one window: by what factor it has changed, where it has.
  std::optional<double> look(Seconds value);

 private:
  [[nodiscard]] double threshold() const;
  // By so many thresholds.
  [[nodiscard]] bool is_away(double value, double thresholds) const;
  void remember(double value);

  Way way_;
  double usual_ = 0;         // logarithms of seconds, like all values here
  int learned_ = 0;          // windows that usual_ rests on, at most kDecided
  int away_ = 0;             // what windows in a row count
  bool far_ = false;         // one of them was twice as far off
  double last_ = 0;          // the last of them
  int steady_ = kSteady;     // windows since it was far off and came back
  std::deque<double> calm_;  // the last windows that are no change
};

}  // namespace riffle::schedule
