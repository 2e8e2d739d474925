// What the strategies of papers should give, by the papers' formulas on plain vectors: all workers
// in one loop, mixing matrices applied directly. Nothing of the runtime is used.
#pragma once

#include "riffle/strategy.h"
#include "runtime/toy.h"

namespace riffle::test {

// The weights of all workers after so many steps of the toy, all starting from rank 0's. None for a
// strategy whose formula stands nowhere here: interpreter.h knows those too.
std::optional<std::vector<Vector>> reference(const std::string& strategy, const World& world,
                                             int steps);

// The same for ds-sync with a delay in numbers, in a world that changes between steps.
using WorldAt = std::function<World(Step)>;
std::vector<Vector> ds_sync_reference(const std::string& strategy, const WorldAt& world_at,
                                      int steps);

double norm(const Vector& x);
// |a - b| / |b|
double distance(const Vector& a, const Vector& b);
Vector mean(const std::vector<Vector>& all);

}  // namespace riffle::test
