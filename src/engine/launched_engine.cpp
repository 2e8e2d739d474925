#include <fmt/format.h>
#include <unistd.h>

#include "riffle/make_engine.h"

namespace riffle {
namespace {

std::unique_ptr<Engine> shared_memory(const EngineOptions& options, const std::string& job,
                                      Rank rank, int size) {
  ShmOptions shm;
  static_cast<EngineOptions&>(shm) = options;
  shm.job = job;
  shm.rank = rank;
  shm.size = size;
  return make_shm_engine(shm);
}

// The job's store. The launcher has named one address for it, so a process opens it once and, where
// it is the one that serves it, does so until it exits: ranks that are slower may still read there,
// and later engines of the job meet there again.
Store& job_store(const LaunchEnvironment& environment) {
  static const JobStore store = open_job_store(environment);
  return *store.client;
}

}  // namespace

std::unique_ptr<Engine> launched_engine(const EngineOptions& options) {
  const auto environment = read_launch_environment(process_environment());
  if (!environment) return shared_memory(options, fmt::format("alone-{}", getpid()), 0, 1);
  if (environment->local_size == environment->size)
    return shared_memory(options, environment->job, environment->rank, environment->size);
  Store& store = job_store(*environment);
  NetworkEngineOptions far = network_engine_options(*environment, store);
  static_cast<EngineOptions&>(far) = options;
  // All ranks make their engines in the same order: those of one number belong together.
  const std::string made = fmt::format("made/{}/{}", far.job, far.rank);
  far.job += fmt::format("/{}", store.add(made, 1, after(far.join_timeout)));
  return make_network_engine(far);
}

}  // namespace riffle
