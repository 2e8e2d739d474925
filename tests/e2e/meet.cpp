// A worker that says who it is, meets all others at the job's store, adds up with them over an
// engine, and says so. `meet launched` only adds up, over the engine that it is given; and again
// over a second one beside it, and over a third one after both.
#include <fmt/format.h>

#include <cstdio>
#include <set>

#include "riffle/collective.h"
#include "riffle/make_engine.h"

namespace riffle {
namespace {

// Everybody adds its rank + 1; the sum tells who took part.
void add_up(const std::unique_ptr<Engine>& engine) {
  Collectives collectives(*engine);
  float sum = static_cast<float>(engine->rank() + 1);
  collectives.all_reduce(Membership::all(engine->size()).ranks, tensor_view(std::span(&sum, 1)),
                         {.reduction = Reduction::sum});
  std::set<std::string> hosts;
  for (Rank rank = 0; rank < engine->size(); ++rank) hosts.insert(engine->host(rank));
  fmt::print("rank {} has the sum {} over {} on {} hosts\n", engine->rank(), sum, engine->name(),
             hosts.size());
}

void meet(const LaunchEnvironment& environment) {
  fmt::print("{}\n", print(environment));
  std::fflush(stdout);
  const JobStore store = open_job_store(environment);
  const std::string all = std::to_string(environment.size);
  const Deadline deadline = after(Seconds(60));
  // Everybody arrives before anybody leaves, and rank 0, which may run the store, leaves last.
  const auto barrier = [&](const std::string& key, int count) {
    if (store.client->add(key, 1, deadline) == count)
      store.client->set(key + "/all", all, deadline);
    return store.client->wait(key + "/all", deadline);
  };
  fmt::print("rank {} met {}\n", environment.rank, barrier("arrived", environment.size));
  add_up(make_network_engine(network_engine_options(environment, *store.client)));
  if (environment.rank != 0) store.client->add("left", 1, deadline);
  while (environment.rank == 0 && environment.size > 1) {
    const auto left = store.client->get("left", deadline);
    if (left == std::to_string(environment.size - 1)) break;
    store.client->wait_change("left", left, deadline);
  }
}

}  // namespace
}  // namespace riffle

int main(int argc, char** /*argv*/) {
  using namespace riffle;
  try {
    if (argc > 1) {
      {
        const auto first = launched_engine();
        const auto second = launched_engine();
        add_up(second);
        add_up(first);
      }
      add_up(launched_engine());
      return 0;
    }
    const auto environment = read_launch_environment(process_environment());
    if (environment)
      meet(*environment);
    else
      fmt::print("alone\n");
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "meet: {}\n", error.what());
    return 1;
  }
}
