// Who meets whom in a step, as lists of ranks: what pages and files say of a program.
#pragma once

#include <vector>

#include "base/json.h"
#include "riffle/program.h"

namespace riffle::report {

// The groups of the exchanges of one bucket, each once, in program order; groups of one are left
// out. Of a shift, whoever is joined by it, directly or through others.
std::vector<std::vector<Rank>> group_lists(const Program& program, int bucket);

}  // namespace riffle::report
