// Ranks of a loopback world as threads.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "riffle/make_engine.h"

namespace riffle::test {

// Hosts of three ranks, the last may be smaller, so that two_level meets unequal racks.
inline std::vector<std::string> hosts_of_three(int n) {
  std::vector<std::string> hosts;
  for (int r = 0; r < n; ++r) hosts.push_back("host" + std::to_string(r / 3));
  return hosts;
}

// Runs a body on every rank; an exception is a failure.
inline void run_ranks(LoopbackWorld& world, const std::function<void(Rank)>& body) {
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < world.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace riffle::test
