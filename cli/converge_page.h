// What the page of charts says of training that `riffle converge` has done.
#pragma once

#include "base/json.h"

namespace riffle::cli {

// A result of a document of kind "convergence", from one of riffle::to_json: its end, its curves by
// steps and, where steps take a known time, by seconds, and theory beside them.
Json page_result(const Json& trained);

}  // namespace riffle::cli
