// A worker of bench/wire.py: collectives of ours and the same messages over raw sockets, in turns.
//
//   riffle lab CLUSTER -- wire_worker --algorithm ring --size 1MB --repeats 5
//
// A call lasts from when its last worker calls until its last worker has the result, by one clock.
// Rank 0 prints a line of JSON for each algorithm and size.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "raw_sockets.h"
#include "riffle/error.h"
#include "riffle/make_engine.h"
#include "riffle/units.h"

namespace riffle::bench {
namespace {

struct Arguments {
  std::vector<std::string> algorithms = {"ring"};
  std::vector<std::string> sizes = {"1MB"};
  int repeats = 5;
};

class Worker {
 public:
  explicit Worker(Engine& engine)
      : engine_(engine),
        collectives_(engine),
        all_(Membership::all(engine.size()).ranks),
        raw_(engine, collectives_) {}

  Json measure(const std::string& name, Bytes size, int repeats) {
    std::vector<float> values(static_cast<std::size_t>(size.count) / sizeof(float), 1.0F);
    const collective::Call call = call_of(name, tensor_view(std::span(values)));
    const collective::Plan plan(call, static_cast<std::size_t>(size.count) + 1);  // in one piece
    std::vector<double> raw;
    std::vector<double> ours;
    for (int i = -1; i < repeats; ++i) {  // the first of each is a warm-up
      const double a = timed([&] { raw_.run(call, plan); });
      const double b = timed([&] { run_ours(call); });
      if (i < 0) continue;
      raw.push_back(a);
      ours.push_back(b);
    }
    return {{"algorithm", name}, {"bytes", size.count}, {"raw", raw}, {"riffle", ours}};
  }

  [[nodiscard]] int rank() const { return engine_.rank(); }

 private:
  [[nodiscard]] collective::Call call_of(const std::string& name, TensorView data) const {
    collective::Call call;
    call.group = all_;
    call.data = data;
    if (name == "shift") {
      call.operation = collective::Operation::shift;
      call.places = 1;
      call.algorithm = Algorithm::direct;
      return call;
    }
    call.algorithm = parse_algorithm(name, "--algorithm");
    for (int member = 0; member < all_.size(); ++member) {  // two racks, for two-level
      const auto rack = static_cast<std::size_t>(2 * member / all_.size());
      if (call.racks.size() == rack) call.racks.emplace_back();
      call.racks[rack].push_back(member);
    }
    return call;
  }

  void run_ours(const collective::Call& call) {
    CollectiveOptions options{.algorithm = call.algorithm};
    std::vector<Group> racks;
    for (const auto& rack : call.racks)
      racks.emplace_back(std::vector<Rank>(rack.begin(), rack.end()));
    options.racks = racks;
    if (call.operation == collective::Operation::shift)
      collectives_.shift(all_, call.places, call.data);
    else
      collectives_.all_reduce(all_, call.data, options);
  }

  template <typename Run>
  double timed(const Run& run) {
    const auto now = [] {
      return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
    };
    collectives_.barrier(all_);
    std::vector<double> begins(static_cast<std::size_t>(engine_.size()));
    std::vector<double> ends = begins;
    const auto self = static_cast<std::size_t>(engine_.rank());
    begins[self] = now();
    run();
    ends[self] = now();
    for (auto* each : {&begins, &ends})
      collectives_.all_reduce(all_, tensor_view(std::span(*each)), {.reduction = Reduction::sum});
    return *std::ranges::max_element(ends) - *std::ranges::max_element(begins);
  }

  Engine& engine_;
  Collectives collectives_;
  Group all_;
  RawSockets raw_;
};

void run(const Arguments& arguments) {
  const auto engine = launched_engine();
  Worker worker(*engine);
  for (const std::string& algorithm : arguments.algorithms)
    for (const std::string& size : arguments.sizes) {
      const Json result = worker.measure(algorithm, parse_bytes(size, "--size"), arguments.repeats);
      if (worker.rank() == 0) fmt::print("{}\n", result.dump());
      std::fflush(stdout);
    }
}

}  // namespace
}  // namespace riffle::bench

int main(int argc, char** argv) {
  CLI::App app{"Collectives beside raw sockets"};
  riffle::bench::Arguments arguments;
  app.add_option("--algorithm", arguments.algorithms,
                 "ring, halving-doubling, recursive-doubling, direct, two-level, shift");
  app.add_option("--size", arguments.sizes);
  app.add_option("--repeats", arguments.repeats)->check(CLI::Range(1, 1000));
  try {
    app.parse(argc, argv);
    riffle::bench::run(arguments);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "wire_worker: {}\n", error.what());
    return 1;
  }
}
