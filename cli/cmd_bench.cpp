#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <tuple>

#include "base/json.h"
#include "base/text.h"
#include "bench_contender.h"
#include "commands.h"
#include "common.h"
#include "riffle/collective.h"
#include "riffle/error.h"
#include "riffle/random.h"

namespace riffle::cli {
namespace {

// ---------------------------------------------------------------------------- allreduce

struct AllReduce {
  std::vector<int> workers{2, 4};
  std::vector<std::string> sizes{"4KiB", "16KiB", "256KiB", "4MiB", "64MiB"};
  std::vector<std::string> against{"openmpi", "gloo"};
  std::string python = "python3";
  int calls = 1000;
  int large_calls = 100;
  std::uint64_t seed = 1;
  Output output;
};

constexpr Bytes large = mebibytes(4);
constexpr int rounds = 4;   // of blocks, so that every contender meets every mood of the machine
constexpr int warm_up = 2;  // calls of a block that do not count: pages, caches

struct Cell {
  int workers = 0;
  Bytes size;
  std::string contender;
  std::vector<Seconds> times;

  [[nodiscard]] Seconds percentile(double share) const {
    const double last = static_cast<double>(times.size() - 1);
    return times[static_cast<std::size_t>(std::lround(share * last))];
  }
};

std::vector<std::string> contenders_of(const AllReduce& arguments, const BenchPrograms& programs) {
  std::vector<std::string> contenders{"riffle", "riffle-foreign"};
  for (const std::string& name : arguments.against) {
    const auto& known = BenchContender::names();
    if (std::ranges::find(known, name) == known.end())
      throw UsageError(unknown_name("contender", name, known));
    contenders.push_back(name);
  }
  for (const std::string& name : contenders)
    if (const auto reason = BenchContender::missing(name, programs); !reason.empty())
      usage_error("--against {}: {}", name, reason);
  return contenders;
}

std::vector<Cell> measure(const AllReduce& arguments, const std::vector<Bytes>& sizes, int workers,
                          const std::vector<std::string>& names, const BenchPrograms& programs,
                          Progress& progress) {
  progress.show(fmt::format("starting {} workers of each contender", workers));
  std::vector<std::unique_ptr<BenchContender>> contenders;
  std::vector<Cell> cells;
  for (const std::string& name : names) {
    contenders.push_back(std::make_unique<BenchContender>(name, workers, programs));
    for (const Bytes size : sizes) cells.push_back({workers, size, name, {}});
  }
  Random random(arguments.seed, static_cast<std::uint64_t>(workers));
  for (int round = 0; round < rounds; ++round)
    for (const int block : random.permutation(static_cast<int>(cells.size()))) {
      Cell& cell = cells[static_cast<std::size_t>(block)];
      const int calls = cell.size < large ? arguments.calls : arguments.large_calls;
      progress.show(fmt::format("{} workers, round {} of {}: {} of {}", workers, round + 1, rounds,
                                cell.contender, print(cell.size)));
      const auto contender = std::ranges::find(names, cell.contender) - names.begin();
      const auto times = contenders[static_cast<std::size_t>(contender)]->run(
          cell.size, warm_up + (calls + rounds - 1) / rounds);
      cell.times.insert(cell.times.end(), times.begin() + warm_up, times.end());
    }
  for (Cell& cell : cells) std::ranges::sort(cell.times);
  return cells;
}

const Cell& riffle_beside(const std::vector<Cell>& cells, const Cell& cell) {
  return *std::ranges::find_if(cells, [&](const Cell& each) {
    return each.workers == cell.workers && each.size == cell.size && each.contender == "riffle";
  });
}

Bandwidth bandwidth_of(const Cell& cell) {
  return {static_cast<double>(cell.size.count) / cell.percentile(0.5).count()};
}

report::Table table_of(const std::vector<Cell>& cells) {
  report::Table table{{{"workers"},
                       {"size"},
                       {"contender", false},
                       {"p50"},
                       {"p99"},
                       {"bandwidth"},
                       {"times riffle"}},
                      {}};
  for (const Cell& cell : cells)
    table.rows.push_back(
        {std::to_string(cell.workers), print(cell.size), cell.contender,
         print(cell.percentile(0.5)), print(cell.percentile(0.99)), print(bandwidth_of(cell)),
         fmt::format("{:.2f}", cell.percentile(0.5).count() /
                                   riffle_beside(cells, cell).percentile(0.5).count())});
  return table;
}

std::string json_of(const std::vector<Cell>& cells) {
  Json json{{"results", Json::array()}};
  for (const Cell& cell : cells)
    json["results"].push_back({{"workers", cell.workers},
                               {"bytes", cell.size.count},
                               {"contender", cell.contender},
                               {"p50_seconds", cell.percentile(0.5).count()},
                               {"p99_seconds", cell.percentile(0.99).count()},
                               {"bytes_per_second", bandwidth_of(cell).bytes_per_second},
                               {"calls", cell.times.size()}});
  return json.dump(1) + "\n";
}

void run(const AllReduce& arguments) {
  const BenchPrograms programs{
      std::filesystem::read_symlink("/proc/self/exe").parent_path().string(), arguments.python};
  std::vector<Bytes> sizes;
  for (const std::string& size : arguments.sizes) {
    sizes.push_back(parse_bytes(size, "--sizes"));
    if (sizes.back().count < 4 || sizes.back().count % 4 != 0)
      usage_error("--sizes: {} is no whole number of f32 elements", size);
  }
  for (const int workers : arguments.workers)
    if (workers < 2 || workers > 256) usage_error("--workers: {} is not in 2..256", workers);
  const auto names = contenders_of(arguments, programs);
  std::vector<Cell> cells;
  {
    Progress progress;
    for (const int workers : arguments.workers)
      std::ranges::move(measure(arguments, sizes, workers, names, programs, progress),
                        std::back_inserter(cells));
  }
  std::ranges::sort(cells, {}, [&](const Cell& cell) {
    return std::tuple(cell.workers, cell.size,
                      std::ranges::find(names, cell.contender) - names.begin());
  });
  if (std::ranges::find(names, "gloo") != names.end())
    fmt::print(stderr,
               "gloo's workers ran under SCHED_BATCH, which makes it faster on shared cores\n");
  if (arguments.output.json()) return arguments.output.write(json_of(cells));
  arguments.output.write(table_of(cells));
}

void add_allreduce(CLI::App& bench) {
  auto* command =
      bench.add_subcommand("allreduce", "all-reduce against Gloo and Open MPI, interleaved");
  const auto arguments = std::make_shared<AllReduce>();
  command->add_option("--workers", arguments->workers, "worker counts")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--sizes", arguments->sizes, "bytes per worker")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--against", arguments->against, "openmpi, gloo, or none with an empty value")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--python", arguments->python, "a Python with torch, for gloo")
      ->capture_default_str();
  command->add_option("--calls", arguments->calls, "calls per cell below 4 MiB")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--large-calls", arguments->large_calls, "calls per cell from 4 MiB on")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "of the order of blocks")->capture_default_str();
  arguments->output.add_to(*command);
  command->footer(
      "Example: riffle bench allreduce --workers 2,3 --sizes 12KiB,7MB --against openmpi");
  command->callback([arguments] { run(*arguments); });
}

// ---------------------------------------------------------------------------- groups

struct Groups {
  int workers = 64;
  int groups = 1000;
  std::uint64_t seed = 1;
  Output output;
};

// A group is a list of ranks and its name; there is nothing else to make.
void run(const Groups& arguments) {
  if (arguments.workers < 2) usage_error("--workers: {} is less than 2", arguments.workers);
  Random random(arguments.seed);
  std::vector<std::vector<Rank>> lists;
  for (int i = 0; i < arguments.groups; ++i) {
    lists.push_back(random.permutation(arguments.workers));
    lists.back().resize(2 + random.below(static_cast<std::uint64_t>(arguments.workers) - 1));
    std::ranges::sort(lists.back());
  }
  std::vector<Group> groups;
  std::map<std::uint64_t, std::size_t> names;
  groups.reserve(lists.size());
  std::vector<std::uint64_t> hashes(lists.size());
  const auto before = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < lists.size(); ++i) {
    groups.emplace_back(std::move(lists[i]));
    hashes[i] = hash_of(groups[i]);
  }
  const Seconds time = std::chrono::steady_clock::now() - before;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto [other, fresh] = names.emplace(hashes[i], i);
    if (!fresh && groups[other->second] != groups[i])
      throw std::runtime_error("two different groups have one name");
  }
  const Seconds each = time / arguments.groups;
  if (arguments.output.json())
    return arguments.output.write(Json{{"workers", arguments.workers},
                                       {"groups", arguments.groups},
                                       {"seconds", time.count()},
                                       {"seconds_per_group", each.count()}}
                                      .dump(1) +
                                  "\n");
  arguments.output.write(
      report::Table{{{"workers"}, {"groups"}, {"all"}, {"each"}},
                    {{std::to_string(arguments.workers), std::to_string(arguments.groups),
                      print(time), print(each)}}});
}

void add_groups(CLI::App& bench) {
  auto* command = bench.add_subcommand("groups", "what it costs to make groups of workers");
  const auto arguments = std::make_shared<Groups>();
  command->add_option("--workers", arguments->workers, "workers to choose from")
      ->capture_default_str();
  command->add_option("--groups", arguments->groups, "random groups to make")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "of the groups")->capture_default_str();
  arguments->output.add_to(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace

void add_bench(CLI::App& app) {
  auto* bench = app.add_subcommand("bench", "measure Riffle against its peers on this machine");
  bench->require_subcommand(1);
  add_allreduce(*bench);
  add_groups(*bench);
}

}  // namespace riffle::cli
