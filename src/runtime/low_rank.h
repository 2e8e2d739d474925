// An exchange of factors on the host: what program.h says of LowRank, around its collective.
#pragma once

#include <functional>

#include "runtime/flight.h"

namespace riffle::runtime {

// `exchange_data` runs the collective of flight.data. After the right factor the gradient is what
// is to be merged.
void run_low_rank(const Flight& flight, const std::function<void()>& exchange_data);

}  // namespace riffle::runtime
