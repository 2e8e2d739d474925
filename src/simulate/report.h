// A simulation as a part of larger documents.
#pragma once

#include "base/json.h"
#include "riffle/simulate.h"

namespace riffle {

Json json_of(const Simulation& simulation);
Simulation read_simulation(const JsonReader& from);

}  // namespace riffle
