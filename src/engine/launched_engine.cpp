#include <fmt/format.h>
#include <unistd.h>

#include "engine/ucx_engine.h"
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

}  // namespace

std::unique_ptr<Engine> launched_engine(const EngineOptions& options) {
  const auto environment = read_launch_environment(process_environment());
  if (!environment) return shared_memory(options, fmt::format("alone-{}", getpid()), 0, 1);
  if (environment->local_size == environment->size)
    return shared_memory(options, environment->job, environment->rank, environment->size);
  const auto store = std::make_shared<JobStore>(open_job_store(*environment));
  UcxOptions ucx = ucx_options(*environment, *store->client);
  static_cast<EngineOptions&>(ucx) = options;
  return engine::make_ucx_engine(ucx, store);
}

}  // namespace riffle
