// The engines there are, and how each is made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "riffle/engine.h"

namespace riffle {

// Processes of one host over shared memory. Every process of the job makes one, with the same job
// name and size and a rank of its own.
struct ShmOptions : EngineOptions {
  // Names the rendezvous on this host; jobs that run at the same time need different names.
  std::string job;
  Rank rank = 0;
  int size = 1;
  // How long to wait for the others to join; then CommError (absent) names the first that is
  // missing.
  Seconds join_timeout{60};
};
bool shm_is_available();
// Returns when all ranks have joined. UsageError for a bad rank or size, a job name in use, or not
// enough memory.
std::unique_ptr<Engine> make_shm_engine(const ShmOptions& options);

// Threads of one process, for tests: rank r's engine is used by rank r's thread. The same code as
// shm but for the segments, which are ordinary memory, and for death, which is injected.
class LoopbackWorld {
 public:
  explicit LoopbackWorld(int size, const EngineOptions& options = {});
  // As above on several pretended hosts: hosts[r] names the host of rank r. Ranks of different
  // hosts share no HostMemory.
  explicit LoopbackWorld(const std::vector<std::string>& hosts, const EngineOptions& options = {});
  ~LoopbackWorld();

  [[nodiscard]] int size() const;
  [[nodiscard]] Engine& engine(Rank rank);

  // Faults. The rank's heartbeat ends, and with kill() the others also learn at once that it is
  // gone. Its thread is not touched: a test lets it stop by itself (interrupted() tells it).
  void kill(Rank rank);
  void freeze(Rank rank);
  [[nodiscard]] bool interrupted(Rank rank) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace riffle
