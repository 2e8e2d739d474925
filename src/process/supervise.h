// Runs the workers of a job on this host, shows their output line by line with the rank in front,
// and ends all of them when one fails or somebody wants it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace riffle::process {

struct SuperviseOptions {
  std::vector<std::string> command;
  // The whole environment of each worker, by rank.
  std::vector<std::vector<std::string>> environments;
  // Runs in a worker's process before the command does (start_process).
  std::function<void(int rank)> prepare = {};
  // The time between the polite signal (SIGTERM) and SIGKILL.
  std::chrono::milliseconds grace{5000};
  // Readable when whoever we work for is gone: then everything ends at once. -1: nobody.
  int lifeline = -1;
  // Receives the lines of the workers instead of our own standard output and error.
  std::function<void(int rank, bool error, std::string_view line)> line = {};
  // Called about so often while workers run. What it returns, if anything, is why they shall end.
  std::function<std::string()> watch = {};
  std::chrono::milliseconds watch_every{100};
};

struct Outcome {
  // 0; of the first worker that failed; 128 + n where signal n ended it, or us.
  int exit_code = 0;
  // Why not 0: who failed first, how, and its last lines on standard error. To be shown last.
  std::string reason;
  // The same in one line: "rank 3: its last line", or how it ended where it has said nothing.
  std::string line;
  // Somebody wanted it: a signal to us, not a worker that failed.
  bool interrupted = false;
};

// Returns when all workers and everything they started have ended, and all output is written or
// its reader has gone. The signals of guard.h must be blocked: SIGINT, SIGTERM, SIGHUP and SIGQUIT
// end the workers, a second one at once. UsageError when the command cannot be run.
Outcome supervise(const SuperviseOptions& options);

}  // namespace riffle::process
