// A trace by the name a person gives it.
#pragma once

#include <string>

#include "riffle/trace.h"

namespace riffle {

// A built-in model, or a file in any known format. A text that is neither is answered with the
// built-in names.
Trace load_trace(const std::string& name_or_file);

}  // namespace riffle
