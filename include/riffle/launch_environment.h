// Who started this process, as which rank of how many, and where the job's store is: the one place
// that reads the environment. docs/launching.md has the same variables in prose.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "riffle/store.h"

namespace riffle {

struct LaunchEnvironment {
  std::string launcher;  // "riffle", "torchrun", "openmpi", "pmi" or "slurm"
  // The same for all ranks of a job, another for every other job; a restart is another job.
  std::string job;
  Rank rank = 0;
  int size = 1;
  Rank local_rank = 0;  // among the ranks of this host
  int local_size = 0;   // ranks of this host; 0 where the launcher does not say
  StoreAddress store;
  // Rank 0 runs the store, except where the launcher does.
  bool serve_store = false;
  // Where it then listens: RIFFLE_STORE_BIND, else the store's own host.
  std::string bind;
  // Interface for data and heartbeats, where one is named: RIFFLE_INTERFACE.
  std::string interface;
  // What carries data between hosts, "tcp" or "ucx"; empty: what suits the interface.
  std::string transport;
  std::string token;
  // False for a token made from the job's name because nobody gave one: it keeps jobs apart by
  // mistake, not strangers.
  bool token_is_secret = false;
  bool operator==(const LaunchEnvironment&) const = default;
};

// The value of a variable; nothing when it is not set. An empty value counts as not set.
using GetVariable = std::function<std::optional<std::string>(std::string_view name)>;
GetVariable process_environment();

// Nothing when no launcher is recognized: this process is alone. UsageError, naming the variable,
// its value and the way out, for variables that contradict each other or are only partly there.
// Where several launchers have left their variables, the innermost counts: RANK and WORLD_SIZE,
// then Open MPI, then PMI, then Slurm.
std::optional<LaunchEnvironment> read_launch_environment(const GetVariable& get);

// Ranks that share the cores of this machine although they are on different (emulated) hosts; 1
// where nobody says so.
int ranks_on_machine(const GetVariable& get);

std::string print(const LaunchEnvironment& environment);  // one line, without the token

// RIFFLE_FAILURE_TIMEOUT, with its unit ("10s"), or nothing; see EngineOptions::failure_timeout.
// UsageError names the variable and its value.
std::optional<Seconds> read_failure_timeout(const GetVariable& get);

// What `riffle profile` asks of the sessions in the processes that it starts.
struct ProfileRequest {
  std::string file;  // where rank 0 writes the trace; empty: nowhere
  int steps = 20;    // that are measured, after the first few
};
// RIFFLE_PROFILE and RIFFLE_PROFILE_STEPS; nothing where the first is not set.
std::optional<ProfileRequest> read_profile_request(const GetVariable& get);

// Every variable the project reads.
struct EnvironmentVariable {
  std::string_view name;
  std::string_view meaning;
};
std::span<const EnvironmentVariable> environment_variables();

// The job's store, seen from one of its workers.
struct JobStore {
  std::unique_ptr<StoreServer> server;  // in the process that runs it
  std::unique_ptr<Store> client;
};
// Starts the store where it is this process's turn, and connects. UsageError when the address
// cannot be listened on, or is one the job's other hosts cannot reach.
JobStore open_job_store(const LaunchEnvironment& environment, Seconds timeout = Seconds(60));

}  // namespace riffle
