#include "simulate/report.h"

#include "base/text.h"

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
  for (const Replanned& each : simulation.replanned)
    json["replanned"].push_back(Json{{"happened", each.happened.count()},
                                     {"at", each.at.count()},
                                     {"step", each.step},
                                     {"what", each.what},
                                     {"step_seconds_before", each.before.count()}});
  return json;
}

Simulation read_simulation(const JsonReader& from) {
  Simulation simulation;
  simulation.strategy = from.at("strategy").text();
  simulation.workers = static_cast<int>(from.at("workers").integer(1, 1 << 30));
  simulation.iteration = from.at("iteration_seconds").seconds();
  simulation.compute = from.at("compute_seconds").seconds();
  simulation.exposed_communication = Seconds(from.at("exposed_communication_seconds").number());
  simulation.speedup = from.at("speedup").number();
  simulation.efficiency = from.at("efficiency").number();
  simulation.bytes_per_worker = from.at("bytes_per_worker").number();
  simulation.messages_per_worker = from.at("messages_per_worker").number();
  for (const std::string& key : from.at("options").keys())
    simulation.options.emplace_back(key, from.at("options").at(key).text());
  simulation.events = from.at("simulator_events").integer(0, kMostWhole);
  simulation.rate_changes = from.at("simulator_rate_changes").integer(0, kMostWhole);
  const JsonReader buckets = from.at("buckets");
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const JsonReader bucket = buckets.at(i);
    SimulatedBucket& read = simulation.buckets.emplace_back();
    for (std::size_t l = 0; l < bucket.at("layers").size(); ++l)
      read.layers.push_back(bucket.at("layers").at(l).text());
    read.bytes = Bytes{bucket.at("bytes").integer(0, kMostWhole)};
    read.start = Seconds(bucket.at("start").number());
    read.end = Seconds(bucket.at("end").number());
  }
  return simulation;
}

std::string to_json(const Simulation& simulation) {
  return json_of(simulation).dump(1) + "\n";
}

}  // namespace riffle
