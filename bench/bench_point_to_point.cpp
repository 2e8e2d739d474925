// Time of point-to-point collectives between processes of this host, algorithm by algorithm: what
// they cost beside the network, and whether pieces and window are well chosen.
//
//   bench_point_to_point [--workers 2] [--piece 262144] [--window 3] [--operation 0]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "collective/point_to_point.h"
#include "processes.h"
#include "riffle/make_engine.h"

namespace riffle {
namespace {

struct Settings {
  int workers = 2;
  int operation = 0;
  collective::PointToPointOptions options;
};

constexpr Algorithm algorithms[] = {Algorithm::ring, Algorithm::halving_doubling,
                                    Algorithm::recursive_doubling, Algorithm::direct};
constexpr std::size_t sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};

double median(std::vector<double>& values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void work(const Settings& settings, const std::string& job, Rank rank) {
  const auto engine = make_shm_engine({{}, job, rank, settings.workers, Seconds(30)});
  collective::PointToPoint p2p(*engine, settings.options);
  for (const std::size_t bytes : sizes) {
    std::vector<float> values(bytes / sizeof(float));
    if (rank == 0) fmt::print("{:>10} B", bytes);
    for (const Algorithm algorithm : algorithms) {
      std::vector<double> times;
      const std::size_t repeats = bytes > (4 << 20) ? 7 : 31;
      for (std::size_t i = 0; i < repeats; ++i) {
        std::fill(values.begin(), values.end(), 1.0F);
        collective::Call barrier{.operation = collective::Operation::barrier,
                                 .group = Membership::all(settings.workers).ranks,
                                 .data = {}};
        collective::Call call{.operation = static_cast<collective::Operation>(settings.operation),
                              .group = barrier.group,
                              .data = tensor_view(values)};
        call.algorithm = algorithm;
        p2p.run(std::move(barrier), after(Seconds(60)));
        const auto began = Clock::now();
        p2p.run(std::move(call), after(Seconds(60)));
        times.push_back(Seconds(Clock::now() - began).count());
      }
      if (rank == 0) fmt::print("  {:>18} {:>9.1f} us", name_of(algorithm), 1e6 * median(times));
    }
    if (rank == 0) fmt::print("\n");
  }
}

}  // namespace
}  // namespace riffle

int main(int argc, char** argv) {
  riffle::Settings settings;
  CLI::App app("Point-to-point collectives between processes of this host.");
  app.add_option("--workers", settings.workers)->check(CLI::Range(1, 64));
  app.add_option("--operation", settings.operation, "0: all_reduce, 1: reduce_scatter, ...")
      ->check(CLI::Range(0, 5));
  app.add_option("--piece", settings.options.piece)->check(CLI::Range(64, 1 << 30));
  app.add_option("--window", settings.options.window)->check(CLI::Range(1, 64));
  CLI11_PARSE(app, argc, argv);
  const std::string job = fmt::format("bench-{}", getpid());
  riffle::Processes workers(settings.workers, [&](int rank) { riffle::work(settings, job, rank); });
  workers.wait();
}
