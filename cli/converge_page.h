// What the page of charts says of training that `riffle converge` has done.
#pragma once

#include "base/json.h"
#include "riffle/converge.h"

namespace riffle::cli {

// A result of a document of kind "convergence": the end of the run, its curves by steps and, where
// steps take a known time, by seconds, and theory beside it.
Json page_result(const Convergence& training);

}  // namespace riffle::cli
