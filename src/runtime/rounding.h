// An exchange whose values travel rounded, on the host: what program.h says of Wire, around a
// collective that rounds.
#pragma once

#include <functional>

#include "riffle/collective.h"
#include "runtime/flight.h"

namespace riffle::runtime {

// `exchange_data` runs the collective of `data` with this rounding. Afterwards data is what is to
// be merged; of an outer step without what was lost, which is added to where it ends.
void run_rounded(const Exchange& exchange, const TensorView& data, const Rounded& rounded,
                 const std::function<void(const Rounding&)>& exchange_data);

}  // namespace riffle::runtime
