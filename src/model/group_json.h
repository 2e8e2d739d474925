// Reading a group from JSON, for every document that names ranks.
#pragma once

#include "base/json.h"
#include "riffle/world.h"

namespace riffle::model {

// A list of ranks from 0 to `last`, each once.
Group read_group(const JsonReader& list, Rank last);

}  // namespace riffle::model
