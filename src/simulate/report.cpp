#include "simulate/report.h"

namespace riffle {

Json json_of(const Simulation& simulation) {
  Json options = Json::object();
  for (const auto& [key, value] : simulation.options) options[key] = value;
  Json json{{"strategy", simulation.strategy},
            {"options", std::move(options)},
            {"workers", simulation.workers},
            {"iteration_seconds", simulation.iteration.count()},
            {"compute_seconds", simulation.compute.count()},
            {"exposed_communication_seconds", simulation.exposed_communication.count()},
            {"speedup", simulation.speedup},
            {"efficiency", simulation.efficiency},
            {"bytes_per_worker", simulation.bytes_per_worker},
            {"messages_per_worker", simulation.messages_per_worker},
            {"simulator_events", simulation.events},
            {"simulator_rate_changes", simulation.rate_changes},
            {"buckets", Json::array()}};
  for (const SimulatedBucket& bucket : simulation.buckets)
    json["buckets"].push_back(Json{{"layers", bucket.layers},
                                   {"bytes", bucket.bytes.count},
                                   {"start", bucket.start.count()},
                                   {"end", bucket.end.count()}});
  return json;
}

std::string to_json(const Simulation& simulation) {
  return json_of(simulation).dump(1) + "\n";
}

}  // namespace riffle
