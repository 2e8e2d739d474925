// Kills (SIGKILL) or freezes (SIGSTOP) a worker in the middle of every collective and algorithm, on
// real processes, and measures how long the survivors take to name it.
//
//   fault_matrix [--workers 4] [--trials 5] [--elements 100000] [--seed 1] [--failure-timeout 1s]
//
// Exit code 1 when a survivor hangs (10 s beyond the failure timeout) or names somebody else.
#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <thread>

#include "collective/point_to_point.h"
#include "processes.h"
#include "riffle/error.h"
#include "riffle/make_engine.h"
#include "riffle/random.h"

namespace riffle {
namespace {

struct Settings {
  int workers = 4;
  int trials = 5;
  std::size_t elements = 100'000;
  std::uint64_t seed = 1;
  Seconds failure_timeout{1};  // what a frozen worker takes to be found
};

struct Cell {
  collective::Operation operation;
  bool shared_memory;  // else point-to-point by `algorithm`
  Algorithm algorithm;
  int signal;
};

// What a worker writes to the pipe: that it is at work, or how its work ended.
struct Record {
  int rank = 0;
  int named = -1;  // -1: at work
  std::int64_t time = 0;
};

std::int64_t now() {
  return Clock::now().time_since_epoch().count();
}

void call(const Cell& cell, Collectives& collectives, collective::PointToPoint& p2p,
          const Group& group, TensorView data) {
  const Deadline deadline = after(Seconds(600));
  if (!cell.shared_memory) {
    collective::Call made{.operation = cell.operation, .group = group, .data = data};
    made.algorithm = cell.algorithm;
    made.places = 1;
    const int half = group.size() / 2;
    made.racks.resize(2);
    for (int m = 0; m < group.size(); ++m) made.racks[m < half ? 0 : 1].push_back(m);
    return p2p.run(std::move(made), deadline);
  }
  switch (cell.operation) {
    case collective::Operation::all_reduce:
      return collectives.all_reduce(group, data);
    case collective::Operation::reduce_scatter:
      return collectives.reduce_scatter(group, data);
    case collective::Operation::all_gather:
      return collectives.all_gather(group, data);
    case collective::Operation::broadcast:
      return collectives.broadcast(group, 0, data);
    case collective::Operation::shift:
      return collectives.shift(group, 1, data);
    case collective::Operation::barrier:
      return collectives.barrier(group);
    default:  // never by shared memory alone; Python.DistributedFailure covers them
      usage_error("the matrix has no such call");
  }
}

// Calls again and again until something fails, reports it and stays alive: a survivor that ended
// would itself look dead to the others.
void work(const Cell& cell, const Settings& settings, const std::string& job, Rank rank, int pipe) {
  const auto engine = make_shm_engine(
      {{.failure_timeout = settings.failure_timeout}, job, rank, settings.workers, Seconds(30)});
  Collectives collectives(*engine);
  collective::PointToPoint p2p(*engine);
  const Group group = Membership::all(settings.workers).ranks;
  std::vector<float> values(settings.elements);
  const auto report = [&](int named) {
    const Record record{rank, named, now()};
    if (write(pipe, &record, sizeof record) != sizeof record) _exit(1);
  };
  try {
    for (int round = 0;; ++round) {
      std::fill(values.begin(), values.end(), 1.0F);
      call(cell, collectives, p2p, group, tensor_view(values));
      if (round == 3) report(-1);
    }
  } catch (const CommError& error) {
    report(error.rank());
    for (;;) pause();
  }
}

// The next record within the time; nothing after it.
bool read_record(int pipe, Record& record, Seconds limit) {
  pollfd ready{.fd = pipe, .events = POLLIN, .revents = 0};
  const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(limit);
  return poll(&ready, 1, static_cast<int>(wait.count())) > 0 &&
         read(pipe, &record, sizeof record) == sizeof record;
}

struct Outcome {
  std::vector<double> seconds;  // to detection, one per survivor
  int hangs = 0;
  int wrong = 0;  // named somebody else
};

void run_trial(const Cell& cell, const Settings& settings, Random& random, Outcome& outcome) {
  int pipe[2];
  if (::pipe(pipe) != 0) throw std::runtime_error("no pipe");
  const std::string job = fmt::format("fault-{}-{:x}", getpid(), random.next());
  {
    const Processes workers(settings.workers,
                            [&](int rank) { work(cell, settings, job, rank, pipe[1]); });
    Record record;
    for (int started = 0; started < settings.workers; ++started)
      if (!read_record(pipe[0], record, Seconds(30)) || record.named != -1)
        throw std::runtime_error("a worker did not start");
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(20'000)));
    const auto victim =
        static_cast<Rank>(random.below(static_cast<std::uint64_t>(settings.workers)));
    const std::int64_t began = now();
    workers.send_signal(victim, cell.signal);
    for (int told = 0; told < settings.workers - 1; ++told) {
      if (!read_record(pipe[0], record, settings.failure_timeout + Seconds(10))) {
        outcome.hangs += settings.workers - 1 - told;
        break;
      }
      outcome.wrong += record.named != victim ? 1 : 0;
      outcome.seconds.push_back(static_cast<double>(record.time - began) * 1e-9);
    }
  }
  close(pipe[0]);
  close(pipe[1]);
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::lround(share * last))];
}

std::vector<Cell> cells() {
  std::vector<Cell> all;
  for (const int signal : {SIGKILL, SIGSTOP})
    for (const collective::Operation operation :
         {collective::Operation::all_reduce, collective::Operation::reduce_scatter,
          collective::Operation::all_gather, collective::Operation::broadcast,
          collective::Operation::shift, collective::Operation::barrier}) {
      all.push_back({operation, true, Algorithm::automatic, signal});
      for (const Algorithm algorithm :
           {Algorithm::ring, Algorithm::halving_doubling, Algorithm::recursive_doubling,
            Algorithm::direct, Algorithm::two_level})
        all.push_back({operation, false, algorithm, signal});
    }
  return all;
}

int run(const Settings& settings) {
  Random random(settings.seed);
  Outcome total;
  fmt::print("{:<15} {:<19} {:<8} {:>6} {:>6} {:>9} {:>9} {:>9}\n", "collective", "algorithm",
             "fault", "hangs", "wrong", "p50 ms", "p99 ms", "max ms");
  for (const Cell& cell : cells()) {
    Outcome outcome;
    for (int trial = 0; trial < settings.trials; ++trial)
      run_trial(cell, settings, random, outcome);
    fmt::print("{:<15} {:<19} {:<8} {:>6} {:>6} {:>9.1f} {:>9.1f} {:>9.1f}\n",
               name_of(cell.operation),
               cell.shared_memory ? "shared memory" : name_of(cell.algorithm),
               cell.signal == SIGKILL ? "kill" : "freeze", outcome.hangs, outcome.wrong,
               1e3 * percentile(outcome.seconds, 0.5), 1e3 * percentile(outcome.seconds, 0.99),
               1e3 * percentile(outcome.seconds, 1));
    std::fflush(stdout);
    total.hangs += outcome.hangs;
    total.wrong += outcome.wrong;
    total.seconds.insert(total.seconds.end(), outcome.seconds.begin(), outcome.seconds.end());
  }
  fmt::print("{} detections, {} hangs, {} wrong names, p99 {:.3f} s\n", total.seconds.size(),
             total.hangs, total.wrong, percentile(total.seconds, 0.99));
  return total.hangs + total.wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace riffle

int main(int argc, char** argv) {
  riffle::Settings settings;
  CLI::App app("Kill and freeze matrix over every collective and algorithm.");
  app.add_option("--workers", settings.workers)->check(CLI::Range(2, 64));
  app.add_option("--trials", settings.trials)->check(CLI::Range(1, 10'000));
  app.add_option("--elements", settings.elements);
  app.add_option("--seed", settings.seed);
  std::string timeout = "1s";
  app.add_option("--failure-timeout", timeout);
  CLI11_PARSE(app, argc, argv);
  try {
    settings.failure_timeout = riffle::parse_seconds(timeout, "--failure-timeout");
    return riffle::run(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fault_matrix: {}\n", error.what());
    return 1;
  }
}
