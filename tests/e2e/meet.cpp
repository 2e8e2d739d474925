// A worker that says who it is, meets all others at the job's store, and says so.
#include <fmt/format.h>

#include <cstdio>

#include "riffle/launch_environment.h"

int main() {
  using namespace riffle;
  try {
    const auto environment = read_launch_environment(process_environment());
    if (!environment) {
      fmt::print("alone\n");
      return 0;
    }
    fmt::print("{}\n", print(*environment));
    std::fflush(stdout);
    const JobStore store = open_job_store(*environment);
    const std::string all = std::to_string(environment->size);
    const Deadline deadline = after(Seconds(60));
    // Everybody arrives before anybody leaves, and rank 0, which may run the store, leaves last.
    const auto barrier = [&](const std::string& key, int count) {
      if (store.client->add(key, 1, deadline) == count)
        store.client->set(key + "/all", all, deadline);
      return store.client->wait(key + "/all", deadline);
    };
    fmt::print("rank {} met {}\n", environment->rank, barrier("arrived", environment->size));
    if (environment->rank != 0) store.client->add("left", 1, deadline);
    while (environment->rank == 0 && environment->size > 1) {
      const auto left = store.client->get("left", deadline);
      if (left == std::to_string(environment->size - 1)) break;
      store.client->wait_change("left", left, deadline);
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "meet: {}\n", error.what());
    return 1;
  }
}
