// What a race came to, for people.
#pragma once

#include <string>

#include "race/race.h"
#include "report/table.h"

namespace riffle::cli {

// The best first; with a target by the time to it, else by the time of a step. Who failed is last.
report::Table ranking_table(const race::Race& race);
// Who failed and why, and how each was run, a line each.
std::string race_notes(const race::Race& race);
// Only what is predicted, the fastest step first.
report::Table prediction_table(const race::Race& race);

}  // namespace riffle::cli
