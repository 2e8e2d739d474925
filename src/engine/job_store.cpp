#include <fmt/format.h>

#include <chrono>

#include "engine/store/socket.h"
#include "riffle/error.h"
#include "riffle/launch_environment.h"

namespace riffle {

namespace {

// Debian gives a host's own name 127.0.1.1: rank 0 would open its store where no other host can
// reach it, and all would wait for nothing.
void check_reachable(const LaunchEnvironment& environment) {
  const bool several_hosts =
      environment.local_size > 0 && environment.local_size < environment.size;
  if (several_hosts && store::is_loopback(environment.bind))
    usage_error(
        "the store's host {} is this host's loopback address, which the other hosts of the job "
        "cannot reach; set RIFFLE_STORE_BIND to this host's address or interface on the network",
        environment.bind);
}

}  // namespace

JobStore open_job_store(const LaunchEnvironment& environment, Seconds timeout) {
  JobStore result;
  if (environment.serve_store) {
    check_reachable(environment);
    StoreServerOptions server;
    server.bind = {environment.bind, environment.store.port};
    server.token = environment.token;
    result.server = std::make_unique<StoreServer>(server);
  }
  result.client = std::make_unique<Store>(
      StoreOptions{.address = result.server ? result.server->address() : environment.store,
                   .token = environment.token,
                   .connect_timeout = timeout});
  return result;
}

}  // namespace riffle
