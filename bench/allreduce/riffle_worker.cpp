// One worker of `riffle bench allreduce`: Riffle on shared memory; or of network_allreduce.py:
// Riffle between hosts, with rank, size and store from the environment.
//
//   allreduce_riffle SOCKET RANK SIZE JOB engine|foreign
//   allreduce_riffle SOCKET ucx
//
// Connects to the command, says its rank, and runs blocks of calls as it is told; see worker.h.
#include <cstdlib>
#include <cstring>
#include <string>

#include "riffle/collective.h"
#include "riffle/make_engine.h"
#include "worker.h"

namespace riffle {
namespace {

void serve(const std::string& socket, Engine& engine, bool of_engine) {
  Collectives collectives(engine);
  const Group all = Membership::all(engine.size()).ranks;
  Buffer buffer;
  std::vector<std::byte> foreign;
  bench::serve(
      socket.c_str(), engine.rank(), engine.size(),
      {
          .prepare =
              [&](std::size_t bytes) {
                buffer = of_engine ? engine.allocate(bytes) : Buffer();
                foreign.assign(of_engine ? 0 : bytes, std::byte{0});
                return reinterpret_cast<float*>(of_engine ? buffer.data() : foreign.data());
              },
          .meet = [&] { collectives.barrier(all); },
          .all_reduce =
              [&](float* values, std::size_t count) {
                collectives.all_reduce(all, tensor_view(std::span(values, count)),
                                       {.reduction = Reduction::sum});
              },
      });
}

void work_on_host(const std::string& socket, Rank rank, int size, const std::string& job,
                  bool of_engine) {
  ShmOptions options;
  options.job = job;
  options.rank = rank;
  options.size = size;
  const auto engine = make_shm_engine(options);
  serve(socket, *engine, of_engine);
}

void work_between_hosts(const std::string& socket) {
  const auto environment = read_launch_environment(process_environment());
  if (!environment) throw std::runtime_error("no launcher's environment");
  const JobStore store = open_job_store(*environment);
  const auto engine = make_ucx_engine(ucx_options(*environment, *store.client));
  serve(socket, *engine, true);
}

}  // namespace
}  // namespace riffle

int main(int argc, char** argv) {
  const bool far = argc == 3 && std::strcmp(argv[2], "ucx") == 0;
  if (argc != 6 && !far) return 2;
  try {
    if (far)
      riffle::work_between_hosts(argv[1]);
    else
      riffle::work_on_host(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), argv[4],
                           std::strcmp(argv[5], "engine") == 0);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "allreduce_riffle: %s\n", error.what());
    return 1;
  }
}
