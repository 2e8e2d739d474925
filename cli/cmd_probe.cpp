#include <fmt/format.h>

#include "commands.h"
#include "common.h"
#include "lab/emulated_compute.h"
#include "lab/wiring.h"
#include "measure/network.h"
#include "riffle/error.h"
#include "riffle/launch_environment.h"
#include "riffle/make_engine.h"

namespace riffle::cli {
namespace {
void run() {
  const auto launched = read_launch_environment(process_environment());
  if (!launched || launched->size < 2) usage_error("probe is one of several workers");
  const auto engine = launched_engine();
  Collectives collectives(*engine);
  const collective::Control control{collectives, Membership::all(engine->size()).ranks,
                                    Seconds(600)};
  const auto begin = Clock::now();
  const auto network = measure::measure_network(
      measure::Place(*engine, control), {.progress = [&](const std::string& what) {
        if (engine->rank() == 0)
          fmt::print(stderr, "{:.2f} {}\n", Seconds(Clock::now() - begin).count(), what);
      }});
  if (engine->rank() != 0) return;
  fmt::print("{} in {} flow time {}\n", print(network.fit.cluster),
             print(Seconds(Clock::now() - begin)), print(network.flow_time));
  fmt::print("residual latency {:.3f} {:.3f} rate {:.3f} {:.3f}\n", network.fit.latency.median,
             network.fit.latency.worst, network.fit.rate.median, network.fit.rate.worst);
  for (int a = 0; a < network.echoes.size(); ++a) {
    for (int b = 0; b < network.echoes.size(); ++b)
      if (a != b)
        fmt::print(" {:.3f}/{:.1f}", network.echoes.at(a, b)->least.count() * 500,
                   network.measured.rate.at(a, b)
                       ? network.measured.rate.at(a, b)->bytes_per_second * 8e-6
                       : 0);
      else
        fmt::print(" -");
    fmt::print("\n");
  }
  for (auto& u : network.measured.uplinks)
    fmt::print("uplink {} {} {} {}\n", print(u.out), print(u.in), print(u.ends), u.flows);
  fmt::print("{}", to_json(network.fit.cluster));
}
}  // namespace
void add_probe(CLI::App& app) {
  auto* command = app.add_subcommand("probe", "measure the network");
  command->callback([] { run(); });
}
}  // namespace riffle::cli
