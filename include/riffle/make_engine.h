// The engines there are, and how each is made. Programs that a launcher starts need only
// launched_engine(); engine.h says what an engine does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "riffle/engine.h"
#include "riffle/launch_environment.h"

namespace riffle {

// This rank's engine in the job that a launcher (riffle launch, torchrun, mpirun, srun) has
// started, by the environment it left: shared memory where it says that all ranks are on this host,
// else whatever reaches them. A process that nobody launched gets a world of its own, of one rank.
// A process may make several, at once or one after the other; all ranks make them in the same
// order. The job's store, where one is needed, lives as long as the process. Returns when all ranks
// have joined; errors are those of read_launch_environment, open_job_store and the engines below.
std::unique_ptr<Engine> launched_engine(const EngineOptions& options = {});

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
// Returns when all ranks have joined. UsageError for a bad rank or size, a job name in use, or not
// enough memory.
std::unique_ptr<Engine> make_shm_engine(const ShmOptions& options);

// Where ranks leave words for each other while they join: a job's store, or what another launcher
// has for that.
class MeetingPlace {
 public:
  virtual ~MeetingPlace() = default;
  virtual void set(const std::string& key, const std::string& value, Deadline deadline) = 0;
  // The value, as soon as there is one; CommError (timed_out) where there is none in time.
  virtual std::string wait(const std::string& key, Deadline deadline) = 0;
  // What every rank reaches over the network that connects them.
  [[nodiscard]] virtual StoreAddress address() const = 0;
};

// Processes of one or several hosts, in one world: ranks of one host share memory as with shm, the
// others are reached over TCP, or over UCX where the interface is one of RDMA. Ranks are of one
// host when they have the machine, the user and the network, IPC and PID namespaces in common.
struct NetworkEngineOptions : EngineOptions {
  // Where the ranks meet; used while joining only.
  Store* store = nullptr;
  // The same, instead of a store.
  MeetingPlace* place = nullptr;
  // Names the meeting in the store; engines that use one store need different names.
  std::string job = {};
  Rank rank = 0;
  int size = 1;
  // The interface that carries data and heartbeats: its name or its IPv4 address. By default the
  // one that reaches the store. Ports are opened there and nowhere else.
  std::string interface = {};
  // "tcp" or "ucx"; empty: UCX where the interface has RDMA and this build has UCX, else TCP. Rank
  // 0's choice counts for all.
  std::string transport = {};
  // Ranks with the same text share memory, ranks with another do not: for tests of several hosts on
  // one. By default this host's identity.
  std::string host = {};
  // How long to wait for the others to join; then CommError (absent) names the first that is
  // missing.
  Seconds join_timeout{60};
};
// The rank's part of a job that a launcher has started.
NetworkEngineOptions network_engine_options(const LaunchEnvironment& environment, Store& store);
// Whether this build has UCX.
bool ucx_is_available();
// Returns when all ranks have joined. UsageError for a bad rank or size, ranks that disagree, an
// unknown interface or transport, or no UCX where it was asked for; CommError when ranks or the
// store are missing.
std::unique_ptr<Engine> make_network_engine(const NetworkEngineOptions& options);

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
