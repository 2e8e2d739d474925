// A switch in user space: whatever a TUN device sends reaches the device that has the address, a
// fixed time later.
#pragma once

#include <sys/types.h>

#include <vector>

#include "support/hosts.h"

namespace riffle::test {

// The descriptor of a new TUN device in the namespace.
int open_tun(const Namespace& where, const char* name);

// Runs until it is killed, or we end. devices[i] is 198.18.0.(i+1).
pid_t start_delaying_switch(const std::vector<int>& devices, Seconds one_way);

}  // namespace riffle::test
