// Bulk transfers over TCP between hosts of a lab, by processes of our own on each host.
#pragma once

#include <functional>
#include <vector>

#include "lab/flow_model.h"
#include "lab/lab.h"

namespace riffle::lab {

// All flows start at once, on connections that are open and warm (each has carried `warm_up` bytes
// before). `rates`: payload bytes per second as the receivers saw them within `window` from the
// start, without its first fifth; `time`: from the start to the last byte of the last flow.
struct Transferred {
  std::vector<double> rates;
  Seconds time{};
};
struct TransferOptions {
  double warm_up = 0;  // bytes
  Seconds window{1};
  int most_in_flight = 0;  // bytes of a flow on their way; 0: as many as TCP likes
};
Transferred transfer(const Hosts& hosts, const std::vector<Flow>& flows,
                     const TransferOptions& options);

// Runs on a host, in a process of its own that may use the memory it shares with us; throws when
// one of them fails or takes longer than the limit.
void run_on_hosts(const Hosts& hosts, const std::vector<int>& which,
                  const std::function<void(int index)>& body, Seconds limit);

}  // namespace riffle::lab
