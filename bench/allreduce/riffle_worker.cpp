// One worker of `riffle bench allreduce`: Riffle on shared memory; or of network_allreduce.py:
// Riffle between hosts, with rank, size and store from the environment.
//
//   allreduce_riffle SOCKET RANK SIZE JOB engine|foreign
//   allreduce_riffle SOCKET far [CLUSTER]   algorithms as a session takes them on that cluster
//   allreduce_riffle predict CLUSTER BYTES  prints that algorithm, and seconds by the cost model
//
// Connects to the command, says its rank, and runs blocks of calls as it is told; see worker.h.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>

#include "riffle/collective.h"
#include "riffle/cost.h"
#include "riffle/make_engine.h"
#include "worker.h"

namespace riffle {
namespace {

using Choice = std::function<Algorithm(Bytes)>;

Algorithm by_default(Bytes /*size*/) {
  return Algorithm::automatic;
}

void serve(const std::string& socket, Engine& engine, bool of_engine, const Choice& choice) {
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
                const Bytes size{static_cast<std::int64_t>(count * sizeof(float))};
                collectives.all_reduce(all, tensor_view(std::span(values, count)),
                                       {.reduction = Reduction::sum, .algorithm = choice(size)});
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
  serve(socket, *engine, of_engine, by_default);
}

void work_between_hosts(const std::string& socket, const std::optional<std::string>& cluster) {
  const auto environment = read_launch_environment(process_environment());
  if (!environment) throw std::runtime_error("no launcher's environment");
  const JobStore store = open_job_store(*environment);
  const auto engine = make_network_engine(network_engine_options(*environment, *store.client));
  if (!cluster) return serve(socket, *engine, true, by_default);
  const CostModel cost(parse_cluster(*cluster));
  const Exchange exchange{.group = Membership::all(engine->size()).ranks};
  serve(socket, *engine, true, [&](Bytes size) { return cost.algorithm(exchange, size); });
}

void predict(const std::string& cluster, Bytes size) {
  const CostModel cost(parse_cluster(cluster));
  const Exchange exchange{.group = Membership::all(cost.cluster().size()).ranks};
  std::printf("%s %.9g\n", std::string(name_of(cost.algorithm(exchange, size))).c_str(),
              cost.time(exchange, size).count());
}

}  // namespace
}  // namespace riffle

int main(int argc, char** argv) {
  const auto is = [&](int at, const char* word) { return std::strcmp(argv[at], word) == 0; };
  try {
    if (argc == 4 && is(1, "predict"))
      riffle::predict(argv[2], riffle::Bytes{std::atoll(argv[3])});
    else if ((argc == 3 || argc == 4) && is(2, "far"))
      riffle::work_between_hosts(argv[1],
                                 argc == 4 ? std::optional<std::string>(argv[3]) : std::nullopt);
    else if (argc == 6)
      riffle::work_on_host(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), argv[4],
                           is(5, "engine"));
    else
      return 2;
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "allreduce_riffle: %s\n", error.what());
    return 1;
  }
}
