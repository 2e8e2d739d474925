// Which processes are of one host, in the sense that they may share memory.
#pragma once

#include <string>

namespace riffle::engine {

// The same for all processes of this machine that have the user and the network, IPC and PID
// namespaces in common; another for all others. Containers and network namespaces are hosts of
// their own, so that an emulated cluster behaves like a real one.
std::string host_identity();

// What people call this host.
std::string host_name();

}  // namespace riffle::engine
