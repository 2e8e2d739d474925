// Stands in for UCX where its headers were not found at build time.
#include "engine/network.h"
#include "riffle/error.h"
#include "riffle/make_engine.h"

namespace riffle::engine {

std::unique_ptr<Network> make_ucx_network(const NetworkOptions&) {
  usage_error(
      "this build has no UCX: install libucx-dev and build again, or take the transport tcp");
}

}  // namespace riffle::engine

namespace riffle {

bool ucx_is_available() {
  return false;
}

}  // namespace riffle
