#include "runtime/overlap.h"

#include <algorithm>

#include "measure/network.h"

namespace riffle::runtime {

double overlap_share(const Engine& engine, int compute_threads, unsigned cores) {
  if (cores == 0 || measure::by_host(engine).size() > 1) return 1;
  const double each = static_cast<double>(cores) / engine.size();
  return std::clamp(each - compute_threads, 0.0, 1.0);
}

Trace overlapped(Trace trace, double share) {
  for (Layer& layer : trace.layers) {
    layer.forward *= share;
    layer.backward *= share;
  }
  return trace;
}

}  // namespace riffle::runtime
