// Runs one contender in a lab of its own.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lab/lab.h"
#include "lab/pace.h"
#include "process/supervise.h"
#include "race/reports.h"

namespace riffle::race {

struct RunOptions {
  lab::LabOptions lab;
  std::vector<std::string> command;  // of every rank
  std::filesystem::path order;       // the file that RIFFLE_RACE names
  std::filesystem::path folder;      // where ranks report
  // A contender that reports nothing for so long has failed.
  Seconds patience{180};
  int lifeline = -1;
  // Called now and then, and once at the end.
  std::function<void(const Reports&)> show;
};

struct Run {
  Reports reports;
  process::Outcome outcome;
  lab::Pace pace;
};

// To be called while there is one thread, in a guarded process (process/guard.h).
Run run_in_lab(const RunOptions& options);

// Runs a command outside any lab and gives its standard output; `line` says what went wrong.
struct Answer {
  std::string text;
  process::Outcome outcome;
};
Answer ask(const std::vector<std::string>& command, Seconds patience, int lifeline,
           const std::function<void(const std::string&)>& said = {});

}  // namespace riffle::race
