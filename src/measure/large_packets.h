// Whether packets of the interface's full size get through, unfragmented: where a switch or a
// tunnel on the way takes less and nobody says so, small messages pass and bulk data hangs.
#pragma once

#include <string>

#include "measure/pair_table.h"
#include "measure/place.h"

namespace riffle::measure {

// Every pair of `among` tries UDP packets of `mtu` bytes from its own `address`, and small ones for
// comparison. False: small ones came and full ones did not; nothing where neither came (something
// blocks UDP). All ranks of the job call it; the result is the same on all, by place in the group.
PairTable<bool> try_large_packets(const Place& place, const Group& among,
                                  const std::string& address, int mtu);

}  // namespace riffle::measure
