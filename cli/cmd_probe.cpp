#include <fmt/format.h>

#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "engine/interface.h"
#include "lab/emulated_compute.h"
#include "measure/large_packets.h"
#include "model/slowed_down.h"
#include "probe_page.h"
#include "riffle/error.h"
#include "riffle/launch_environment.h"
#include "riffle/make_engine.h"

namespace riffle::cli {
namespace {

constexpr Tag kFacts{.channel = 0x66616374};  // "fact"

struct Arguments {
  std::string format = "table";
  std::string output;
  std::string timeout = "600s";
};

[[noreturn]] void refuse_to_be_alone() {
  usage_error(
      "probe measures between workers, and this process is alone; start it as you start training: "
      "`torchrun ... riffle probe` (with --no-python), `mpirun riffle probe`, `srun riffle probe`, "
      "`riffle launch -n 2 -- riffle probe`, or in an emulated network `riffle lab "
      "flat:4,latency=2ms,bandwidth=200Mbps -- riffle probe`");
}

// To the first rank, from the one that speaks for each host; empty on the others.
std::vector<measure::HostFacts> gather(const measure::Place& place, const Group& speakers,
                                       const measure::HostFacts& own) {
  std::vector<measure::HostFacts> all;
  const Rank self = place.engine().rank();
  const std::string text = to_json(own);
  for (const Rank rank : speakers) {
    std::uint64_t size = text.size();
    if (self == 0 && rank == 0) {
      all.push_back(own);
    } else if (self == 0) {
      place.receive(rank, kFacts, std::as_writable_bytes(std::span(&size, 1)));
      std::string theirs(size, ' ');
      place.receive(rank, kFacts, std::as_writable_bytes(std::span(theirs)));
      all.push_back(measure::host_facts_from_json(theirs));
    } else if (self == rank) {
      place.send(0, kFacts, std::as_bytes(std::span(&size, 1)));
      place.send(0, kFacts, std::as_bytes(std::span(text)));
    }
  }
  return all;
}

measure::HostFacts own_facts(const LaunchEnvironment& launched, int hosts) {
  if (hosts < 2) return measure::read_host_facts("", "");
  const engine::Interface used = engine::find_interface(launched.interface, launched.store);
  return measure::read_host_facts(used.name, used.address);
}

// What a lab has slowed down, as it truly is.
void speed_up(Probed& probed) {
  measure::Network& network = probed.network;
  const double dilate = probed.dilate;
  const double rate = probed.dilate * probed.shrink;
  network.fit.cluster =
      model::slowed_down(std::move(network.fit.cluster), 1 / dilate, 1 / probed.shrink);
  const int n = network.speakers.size();
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b) {
      if (auto& latency = network.measured.latency.at(a, b)) *latency /= dilate;
      if (auto& each = network.measured.rate.at(a, b)) each->bytes_per_second *= rate;
      if (auto& echo = network.echoes.at(a, b))
        *echo = {echo->least / dilate, echo->usual / dilate};
    }
  for (Link& link : network.measured.inside) {
    link.latency /= dilate;
    link.bandwidth.bytes_per_second *= rate;
  }
  for (measure::UplinkLoad& load : network.measured.uplinks)
    for (Bandwidth* each : {&load.out, &load.in, &load.ends}) each->bytes_per_second *= rate;
  for (measure::HostFacts& facts : probed.facts)
    for (Bytes* buffer : {&facts.receive_buffer, &facts.send_buffer})
      buffer->count = static_cast<std::int64_t>(static_cast<double>(buffer->count) * probed.shrink);
}

Probed measure_all(Engine& engine, const LaunchEnvironment& launched, Seconds timeout) {
  Collectives collectives(engine);
  const collective::Control control{collectives, Membership::all(engine.size()).ranks, timeout};
  const measure::Place place(engine, control);
  Progress progress;
  const auto begin = Clock::now();
  Probed probed;
  probed.launcher = launched.launcher;
  probed.network = measure::measure_network(place, {.progress = [&](const std::string& what) {
                                              if (engine.rank() == 0)
                                                progress.show("measuring " + what);
                                            }});
  const Group& speakers = probed.network.speakers;
  const measure::HostFacts own = own_facts(launched, speakers.size());
  const auto passed = measure::try_large_packets(place, speakers, own.address, own.used.mtu);
  probed.facts = gather(place, speakers, own);
  probed.took = Clock::now() - begin;
  if (const auto lab = lab::read_lab_environment()) {
    probed.dilate = lab->dilate;
    probed.shrink = lab->shrink;
    speed_up(probed);
  }
  if (engine.rank() == 0) probed.advice = diagnose(probed.network, probed.facts, passed);
  // Nobody leaves before all is told.
  place.meet();
  return probed;
}

void run(const Arguments& arguments) {
  const Seconds timeout = parse_seconds(arguments.timeout, "--timeout");
  const auto launched = read_launch_environment(process_environment());
  if (!launched || launched->size < 2) refuse_to_be_alone();
  const auto engine = launched_engine();
  const Probed probed = measure_all(*engine, *launched, timeout);
  if (engine->rank() != 0) return;
  if (!arguments.output.empty()) write_file(arguments.output, to_json(probed.network.fit.cluster));
  const Output output{.format = arguments.format, .file = {}};
  output.write(output.json() ? probe_json(probed).dump(1) + "\n"
                             : probe_page(probed, output.colour()));
  if (!arguments.output.empty())
    fmt::print(stderr, "riffle: {} is the cluster for plan, simulate and lab\n", arguments.output);
}

}  // namespace

void add_probe(CLI::App& app) {
  auto* command = app.add_subcommand("probe", "measure the network that a job runs on");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--format", arguments->format, "how results are printed")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->add_option("--output", arguments->output,
                      "write what was found as a cluster file, for --cluster FILE and riffle lab");
  command->add_option("--timeout", arguments->timeout, "give up after this time")
      ->capture_default_str();
  command->footer(
      "Every worker of a job runs it; rank 0 prints. It finds the latency and the rate of every\n"
      "pair of hosts, racks and sites with their shared links, says how well that explains what\n"
      "was measured, and what is wrong with the network. Hosts are busy meanwhile, and so are the\n"
      "links between them.\n\n"
      "Example: torchrun --nnodes 4 --nproc-per-node 1 --master-addr HOST --no-python \\\n"
      "           riffle probe --output cluster.json\n"
      "         riffle lab racks:2x4,inner=1ms/100Mbps,outer=4ms/50Mbps -- riffle probe\n"
      "         riffle plan --cluster cluster.json");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace riffle::cli
