// One worker of `riffle bench allreduce`: Riffle on shared memory.
//
//   allreduce_riffle SOCKET RANK SIZE JOB engine|foreign
//
// Connects to the command, says its rank, and runs blocks of calls as it is told; see worker.h.
#include <cstdlib>
#include <cstring>
#include <string>

#include "riffle/collective.h"
#include "riffle/engines.h"
#include "worker.h"

namespace riffle {
namespace {

void work(const std::string& socket, Rank rank, int size, const std::string& job, bool of_engine) {
  ShmOptions options;
  options.job = job;
  options.rank = rank;
  options.size = size;
  const auto engine = make_shm_engine(options);
  Collectives collectives(*engine);
  const Group all = Membership::all(size).ranks;
  Buffer buffer;
  std::vector<std::byte> foreign;
  bench::serve(
      socket.c_str(), rank, size,
      {
          .prepare =
              [&](std::size_t bytes) {
                buffer = of_engine ? engine->allocate(bytes) : Buffer();
                foreign.assign(of_engine ? 0 : bytes, std::byte{0});
                return reinterpret_cast<float*>(of_engine ? buffer.data() : foreign.data());
              },
          .meet = [&] { collectives.barrier(all); },
          .all_reduce =
              [&](float* values, std::size_t count) {
                collectives.all_reduce(all, elements(std::span(values, count)),
                                       {.reduction = Reduction::sum});
              },
      });
}

}  // namespace
}  // namespace riffle

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  try {
    riffle::work(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), argv[4],
                 std::strcmp(argv[5], "engine") == 0);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "allreduce_riffle: %s\n", error.what());
    return 1;
  }
}
