// One contender's part of a race, from its name to its result.
#pragma once

#include <filesystem>
#include <functional>

#include "race/contender.h"
#include "race/run.h"

namespace riffle::race {

// What all contenders of a race have in common.
struct Setting {
  Race head;  // what race.json says of it, without results
  std::vector<Change> events;
  Trace times;  // what computing takes on the true cluster
  // With a task, else of no meaning.
  std::string data;
  int batch = 0;
  double learning_rate = 0;
  int evaluate = 10;  // after every so many steps
  // To be counted, rounded up to whole periods; with a target the most.
  Step steps = 20;
  // Programs and places.
  std::string python;
  std::string worker;
  std::filesystem::path folder;
  int lifeline = -1;
};

// What of a contender is rounded to whole periods.
struct Length {
  int period = 1;
  Step warm_up = 0;
  Step steps = 0;
};
// With a trace whole steps warm up, at least until pipelines and delayed exchanges are full; with a
// task, which would be ahead by them, only passes that change nothing.
Length length_of(const Setting& setting, const Traits& traits);

// The file that ranks are given (RIFFLE_RACE).
std::string order_json(const Setting& setting, const Contender& contender, const Length& length,
                       const std::filesystem::path& folder);

struct Contest {
  Result result;
  bool interrupted = false;
  lab::Pace pace{};
};
using Show = std::function<void(const Reports&, Step steps)>;
// Never throws for what is the contender's fault: the result says what failed.
Contest run_contender(const Setting& setting, const Contender& contender, const Show& show);

}  // namespace riffle::race
