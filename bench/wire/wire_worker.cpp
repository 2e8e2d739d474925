// A worker of bench/wire.py: collectives of ours and the same messages over raw sockets, in turns.
//
//   riffle lab CLUSTER -- wire_worker --cell ring:1MB --repeats 5 --seconds 2
//
// A call lasts from when its last worker calls until its last worker has the result, by one clock.
// Rank 0 prints a line of JSON for each cell.
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
  std::vector<std::string> cells = {"ring:1MB"};
  int repeats = 5;
  double seconds = 2;
  int warm_ups = 1;
};

class Worker {
 public:
  explicit Worker(Engine& engine)
      : engine_(engine),
        collectives_(engine),
        all_(Membership::all(engine.size()).ranks),
        raw_(engine, collectives_) {}

  // Up to `repeats` calls of each after the warm-ups, as many as fit into the time; two at least,
  // which may be warm-ups. All ranks see the same times and so stop together.
  Json measure(const std::string& name, Bytes size, const Arguments& arguments) {
    std::vector<float> values(static_cast<std::size_t>(size.count) / sizeof(float), 1.0F);
    const collective::Call call = call_of(name, tensor_view(std::span(values)));
    const collective::Plan plan(call, size + Bytes{1});  // in one piece
    std::vector<double> raw;
    std::vector<double> ours;
    double spent = 0;
    const auto warm_ups = static_cast<std::size_t>(arguments.warm_ups);
    const std::size_t most = warm_ups + static_cast<std::size_t>(arguments.repeats);
    while (raw.size() < 2 || (raw.size() < most && spent < arguments.seconds)) {
      raw.push_back(timed([&] { raw_.run(call, plan); }));
      ours.push_back(timed([&] { run_ours(call); }));
      spent += raw.back() + ours.back();
    }
    const auto dropped = static_cast<std::ptrdiff_t>(std::min(warm_ups, raw.size() - 2));
    for (auto* each : {&raw, &ours}) each->erase(each->begin(), each->begin() + dropped);
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
  for (const std::string& cell : arguments.cells) {
    const std::size_t colon = cell.find(':');
    if (colon == std::string::npos) usage_error("--cell {}: it is ALGORITHM:SIZE", cell);
    const Json result = worker.measure(cell.substr(0, colon),
                                       parse_bytes(cell.substr(colon + 1), "--cell"), arguments);
    if (worker.rank() == 0) fmt::print("{}\n", result.dump());
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace riffle::bench

int main(int argc, char** argv) {
  CLI::App app{"Collectives beside raw sockets"};
  riffle::bench::Arguments arguments;
  app.add_option("--cell", arguments.cells,
                 "ALGORITHM:SIZE; ring, halving-doubling, recursive-doubling, direct, two-level, "
                 "shift");
  app.add_option("--repeats", arguments.repeats)->check(CLI::Range(1, 1000));
  app.add_option("--warmups", arguments.warm_ups)->check(CLI::Range(0, 1000));
  app.add_option("--seconds", arguments.seconds)->check(CLI::Range(0.0, 3600.0));
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
