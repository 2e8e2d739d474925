// A race while it runs, on standard error: a table that is redrawn on a terminal of 80 columns,
// plain lines elsewhere.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "race/reports.h"

namespace riffle::cli {

// One contender as the table shows it.
struct RaceRow {
  std::string name;
  std::string state = "waits";  // instead of figures, while there are none
  Step step = 0;
  Step steps = 0;
  double seconds_per_step = 0;  // of the true cluster
  std::optional<double> loss{};
  std::optional<double> exposed{};
  std::optional<double> accuracy{};
};
// At most `width` columns, without a line break.
std::string print_row(const RaceRow& row, int width);
std::string print_race_head(int width);

// What ranks have reported so far, of steps since the last one looked at (10 of them at least).
void update(RaceRow& row, const race::Reports& reports, Step steps, double dilate);

class RaceScreen {
 public:
  explicit RaceScreen(const std::vector<std::string>& names);

  RaceRow& row(std::size_t index) { return rows_[index]; }
  // Row `index` has changed. Not drawn more often than a person can read, unless it is the end.
  void show(std::size_t index, bool at_once = false);

 private:
  void draw();

  bool terminal_;
  std::vector<RaceRow> rows_;
  int drawn_ = 0;  // lines that the next drawing writes over
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace riffle::cli
