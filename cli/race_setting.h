// From the options of `riffle race` to what is raced.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "race/contest.h"

namespace riffle::cli {

struct RaceArguments {
  std::string cluster = "racks:2x4,inner=200us/1Gbps,outer=300us/200Mbps";
  std::vector<std::string> strategies{"torch-ddp", "wfbp",  "mg-wfbp", "sesgd",
                                      "ds-sync",   "dasgd", "dear"};
  std::string task;
  std::string trace;
  std::string data = "real";
  std::optional<std::int64_t> steps{};
  std::optional<double> epochs{};
  std::optional<double> target{};
  std::vector<std::string> events;
  std::uint64_t seed = 1;
  std::string dilate = "auto";
  std::string shrink = "auto";
  std::string folder = "riffle-race";
  std::string format = "table";
  bool resume = false;
};

// What can be wrong before anything runs. Times, dilation and the like are not set yet with a task.
race::Setting checked_setting(const RaceArguments& arguments);

// The times of a trace, or of the task as it is measured here; dilation and shrinking. Says on
// standard error what it chose, and why.
void complete(race::Setting& setting, const RaceArguments& arguments);

}  // namespace riffle::cli
