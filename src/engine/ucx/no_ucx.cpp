// Stands in for UCX where its headers were not found at build time.
#include "engine/network.h"
#include "riffle/engines.h"
#include "riffle/error.h"

namespace riffle {

bool ucx_is_available() {
  return false;
}

std::unique_ptr<Network> make_ucx_network(const NetworkOptions&) {
  usage_error("this build cannot reach other hosts: install libucx-dev and build again");
}

}  // namespace riffle
