// Which of this host's network interfaces to use.
#pragma once

#include <string>

#include "riffle/store.h"

namespace riffle::engine {

struct Interface {
  std::string name;     // "eth0"
  std::string address;  // IPv4, numeric
  [[nodiscard]] bool loopback() const { return address.starts_with("127."); }
};

// Whether a device of RDMA stands behind it.
bool has_rdma(const Interface& interface);

// The one that is named, by its name or its address; or, for an empty name, the one that reaches
// the store. UsageError, with the interfaces there are, where there is none.
Interface find_interface(const std::string& wanted, const StoreAddress& store);

}  // namespace riffle::engine
