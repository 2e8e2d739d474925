// A race: the same training under several contenders on one emulated cluster. What came of it, as
// data; race.json is this. All times are seconds of the true cluster (virtual time).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "riffle/cluster.h"
#include "riffle/world.h"

namespace riffle::race {

struct Evaluation {
  Step step = 0;  // after so many steps
  double seconds = 0;
  double accuracy = 0;
  bool operator==(const Evaluation&) const = default;
};

// Loss against time, mean over ranks; at most a few hundred points.
struct Curve {
  std::vector<double> seconds;
  std::vector<double> loss;
  std::vector<Step> step;
  bool operator==(const Curve&) const = default;
};

struct Prediction {
  double seconds_per_step = 0;
  double compute = 0;
  double exposed = 0;
  bool operator==(const Prediction&) const = default;
};

using Groups = std::vector<std::vector<Rank>>;  // of one step

struct Result {
  std::string contender;
  std::string failed{};  // why, in one line; empty: it has not
  std::string how{};     // it was run
  int rank = 0;          // 1 is the best; 0: none, it failed
  Step steps = 0;        // that were counted
  std::optional<double> seconds_per_step{};
  std::optional<double> exposed{};  // communication, of a step
  std::optional<double> hidden{};
  std::optional<double> compute{};
  std::optional<Prediction> predicted{};
  std::optional<double> final_loss{};
  std::optional<double> accuracy{};
  std::optional<double> seconds_to_target{};
  std::optional<double> speedup{};  // over the first contender named
  Curve curve{};
  std::vector<Evaluation> evaluations{};
  std::optional<std::vector<Groups>> groups{};  // by step, of one period
  Json timeline{};              // of one step on all ranks (report/step_timeline.h); null: none
  std::string timeline_file{};  // beside race.json; empty: none
  bool operator==(const Result&) const = default;
};

struct Race {
  std::string command{};  // to repeat it
  std::string cluster{};  // as it was spelled
  Cluster topology{};
  double dilate = 1;
  double shrink = 1;
  std::string task{};  // one of the two is empty
  std::string trace{};
  std::optional<double> target{};
  std::uint64_t seed = 1;
  std::string events{};
  bool interrupted = false;
  std::vector<Result> results{};  // as they were named
  bool operator==(const Race&) const = default;

  [[nodiscard]] bool by_target() const { return target.has_value(); }
};

std::string to_json(const Race& race);
// Ignores fields it does not know. UsageError names file, field and value.
Race race_from_json(std::string_view text, std::string_view source);

// Sets rank and speedup of all. By the time to the target where there is one: who did not reach it
// comes after who did, the more accurate first; else by the time of a step. Who failed has none.
void rank_results(Race& race);
// The results, the best first, those that failed last.
std::vector<const Result*> in_order(const Race& race);

}  // namespace riffle::race
