// What the ranks of a contender report while they run: lines of JSON that each appends to a file of
// its own. Clocks here are real (dilated) seconds.
//
//   {"step": 12, "seconds": 1.23, "exposed": 0.01, "loss": 0.4}   so many steps have ended
//   {"evaluated": 12, "seconds": 1.23, "accuracy": 0.971}         rank 0, off the clock
//   {"end": "target", "steps": 40, "seconds": 4.5, "timeline": "rank0.timeline.json"}
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "race/race.h"

namespace riffle::race {

struct ReportedStep {
  double seconds = 0;
  std::optional<double> exposed{};
  std::optional<double> loss{};
};

struct ReportedEnd {
  std::string why;
  std::string timeline{};  // a file; empty: none
};

class RankReport {
 public:
  // A line that is torn waits for its end. UsageError, naming `source` and the line, for one that
  // is none of the above; lines after it are not lost. Fields that are not known are ignored.
  void feed(std::string_view bytes, std::string_view source);

  [[nodiscard]] const std::vector<ReportedStep>& steps() const { return steps_; }
  [[nodiscard]] const std::vector<Evaluation>& evaluations() const { return evaluations_; }
  [[nodiscard]] const std::optional<ReportedEnd>& end() const { return end_; }

 private:
  void take(std::string_view line, const std::string& where);

  std::string torn_;
  int line_ = 0;
  std::vector<ReportedStep> steps_;
  std::vector<Evaluation> evaluations_;
  std::optional<ReportedEnd> end_;
};

// Of all ranks, read from DIR/rank<R>.jsonl as they grow.
class Reports {
 public:
  Reports(std::filesystem::path folder, int ranks);

  // Reads what has come since; true where something has.
  bool read();

  [[nodiscard]] const std::vector<RankReport>& ranks() const { return ranks_; }
  // Steps that all ranks have ended.
  [[nodiscard]] Step steps() const;
  // Some rank has begun to count.
  [[nodiscard]] bool begun() const;

 private:
  std::filesystem::path folder_;
  std::vector<RankReport> ranks_;
  std::vector<std::streamoff> read_;
};

}  // namespace riffle::race
