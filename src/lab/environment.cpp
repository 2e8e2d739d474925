#include "lab/environment.h"

#include <fmt/format.h>

#include "base/json.h"

namespace riffle::lab {

namespace {

constexpr int master_port = 29'500;  // free: the host's network is new

}  // namespace

process::JobShape shape_of(const Lab& lab, int per_host) {
  return {.workers = lab.hosts().size() * per_host,
          .per_host = per_host,
          .master = address_of(0),
          .master_port = master_port};
}

process::Environment worker_environment(const LabOptions& options, const Lab& lab,
                                        const process::JobShape& shape) {
  process::Environment environment = job_environment(shape);
  // Hosts of a lab share the cores of one machine.
  environment.insert_or_assign("RIFFLE_MACHINE_RANKS", std::to_string(shape.workers));
  environment.insert_or_assign("GLOO_SOCKET_IFNAME", "eth0");
  environment.insert_or_assign("RIFFLE_LAB_CLUSTER",
                               parse_json(to_json(options.cluster), "cluster").dump());
  environment.insert_or_assign("RIFFLE_LAB_DILATE", fmt::format("{}", options.dilate));
  environment.insert_or_assign("RIFFLE_LAB_SHRINK", fmt::format("{}", options.shrink));
  std::string events;
  for (const Change& change : options.events)  // a variable's size is bounded
    if (change.slow) events += print(change) + " ";
  environment.insert_or_assign("RIFFLE_LAB_EVENTS", events);
  environment.insert_or_assign("RIFFLE_LAB_START", std::to_string(lab.clock_start()));
  for (const char* other : {"RIFFLE_LAUNCHER", "RIFFLE_STORE", "RIFFLE_STORE_BIND"})
    environment.erase(other);
  return environment;
}

}  // namespace riffle::lab
