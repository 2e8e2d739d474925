// What the lab prints: counters of links, and what a check has measured.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "lab/check.h"
#include "lab/lab.h"
#include "report/table.h"

namespace riffle::cli {

// Of each link and direction: bytes (payload) and packets it carried, what was dropped and lost,
// the share of `time` it was busy, the most that waited.
report::Table stats_table(const lab::Lab& lab, Seconds time);
Json stats_json(const lab::Lab& lab, Seconds time);

report::Table check_table(const std::vector<lab::Measured>& results);
Json check_json(const std::vector<lab::Measured>& results);

}  // namespace riffle::cli
