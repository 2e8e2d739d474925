#include "process/supervise.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>

#include "process/guard.h"
#include "process/lines.h"
#include "process/start.h"
#include "process/terminal_output.h"

namespace riffle::process {

namespace {

using Clock = std::chrono::steady_clock;
using Stream = TerminalOutput::Stream;

constexpr std::size_t lines_kept = 20;

// One stream of one worker.
struct Source {
  Descriptor pipe;
  LineBuffer lines;

  // False when there is nothing more now.
  bool read_some() {
    std::array<char, std::size_t{64} * 1024> bytes;
    const ssize_t got = read(pipe.get(), bytes.data(), bytes.size());
    if (got > 0) {
      lines.feed({bytes.data(), static_cast<std::size_t>(got)}, Clock::now());
      return true;
    }
    if (got == 0) close();
    return false;
  }
  void close() {
    lines.finish();
    pipe.reset();
  }
};

struct Worker {
  int rank = 0;
  pid_t pid = 0;  // 0: has ended
  std::vector<Source> sources = {};
  std::deque<std::string> last_lines = {};  // of standard error
};

std::string how_it_ended(int rank, int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    const char* name = sigabbrev_np(number);
    return fmt::format("rank {} was killed by SIG{} ({})", rank, name != nullptr ? name : "?",
                       strsignal(number));
  }
  return fmt::format("rank {} ended with exit code {}", rank, WEXITSTATUS(status));
}

int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

class Supervisor {
 public:
  explicit Supervisor(const SuperviseOptions& options) : options_(options) {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&set, number);
    signals_ = Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_.valid())
      throw std::runtime_error(fmt::format("no signalfd: {}", std::strerror(errno)));
  }

  // Whatever happens, nothing is left.
  ~Supervisor() { end_all_children(std::chrono::seconds(10)); }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  Outcome run() {
    for (std::size_t r = 0; r < options_.environments.size(); ++r) start(static_cast<int>(r));
    while (running() > 0) turn();
    end_all_children(std::chrono::seconds(10));
    for (Worker& worker : workers_)
      for (Source& source : worker.sources) drain(source);
    while (!output_.empty() && !hurry_) turn();
    return std::move(outcome_);
  }

 private:
  void start(int rank) {
    const auto prepare = [&] { options_.prepare(rank); };
    Started started =
        start_process(options_.command, options_.environments[static_cast<std::size_t>(rank)],
                      options_.prepare ? prepare : std::function<void()>());
    Worker& worker = workers_.emplace_back(Worker{.rank = rank, .pid = started.pid});
    worker.sources.push_back(
        {std::move(started.output), LineBuffer([this, rank](std::string_view line) {
           show(TerminalOutput::standard_output, rank, line);
         })});
    worker.sources.push_back(
        {std::move(started.error), LineBuffer([this, &worker](std::string_view line) {
           show(TerminalOutput::standard_error, worker.rank, line);
           worker.last_lines.emplace_back(line);
           if (worker.last_lines.size() > lines_kept) worker.last_lines.pop_front();
         })});
  }

  void show(Stream stream, int rank, std::string_view line) {
    if (options_.line) return options_.line(rank, stream == TerminalOutput::standard_error, line);
    const auto width = std::to_string(options_.environments.size() - 1).size();
    const std::string prefix = fmt::format("[{:>{}}] ", rank, width);
    constexpr int colours = 6;  // red to cyan
    output_.add(stream,
                output_.is_terminal(stream)
                    ? fmt::format("\x1b[3{}m{}\x1b[0m", 1 + rank % colours, prefix)
                    : prefix,
                line);
  }

  [[nodiscard]] long running() const {
    return std::ranges::count_if(workers_, [](const Worker& worker) { return worker.pid != 0; });
  }

  // Waits for anything to happen, and handles it.
  void turn() {
    std::vector<pollfd> polled = {
        {.fd = signals_.get(), .events = POLLIN, .revents = 0},
        {.fd = hurry_ ? -1 : options_.lifeline, .events = POLLIN, .revents = 0},
        output_.wish(TerminalOutput::standard_output),
        output_.wish(TerminalOutput::standard_error)};
    std::vector<Source*> sources;
    if (output_.has_room())
      for (Worker& worker : workers_)
        for (Source& source : worker.sources)
          if (source.pipe.valid()) {
            sources.push_back(&source);
            polled.push_back({.fd = source.pipe.get(), .events = POLLIN, .revents = 0});
          }
    const std::size_t fixed = polled.size() - sources.size();
    poll(polled.data(), polled.size(), longest_wait());

    if (polled[0].revents != 0) take_signals();
    if (polled[1].revents != 0) hurry();
    output_.write_some(TerminalOutput::standard_output, polled[2].revents);
    output_.write_some(TerminalOutput::standard_error, polled[3].revents);
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (polled[fixed + i].revents != 0) sources[i]->read_some();
    if (output_.closed()) end_workers({.exit_code = 128 + SIGPIPE, .reason = "", .line = ""});
    if (kill_at_ && Clock::now() >= *kill_at_) send_all(SIGKILL);
    watch();
  }

  void watch() {
    if (!options_.watch || running() == 0 || Clock::now() < next_watch_) return;
    next_watch_ = Clock::now() + options_.watch_every;
    const std::string why = options_.watch();
    if (!why.empty()) end_workers({.exit_code = 1, .reason = why, .line = why});
  }

  [[nodiscard]] int longest_wait() const {
    const int limit = until_kill();
    if (!options_.watch) return limit;
    const int every = static_cast<int>(options_.watch_every.count());
    return limit < 0 ? every : std::min(limit, every);
  }

  [[nodiscard]] int until_kill() const {
    if (!kill_at_ || running() == 0) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - Clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 10, 60'000));
  }

  void take_signals() {
    signalfd_siginfo signal{};
    bool child = false;
    while (read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
      const int number = static_cast<int>(signal.ssi_signo);
      if (number == SIGCHLD)
        child = true;
      else if (interrupted_)
        hurry();
      else
        interrupt(number);
    }
    if (child) reap();
  }

  void interrupt(int number) {
    interrupted_ = true;
    hurry_ = running() == 0;  // all that is left is a reader who does not read
    const std::string why = fmt::format("ended by SIG{}", sigabbrev_np(number));
    end_workers({.exit_code = 128 + number, .reason = why, .line = why, .interrupted = true});
  }

  void hurry() {
    hurry_ = true;
    end_workers({.exit_code = 128 + SIGKILL, .reason = "", .line = "ended", .interrupted = true});
    send_all(SIGKILL);
  }

  // The first reason counts.
  void end_workers(Outcome why) {
    if (kill_at_) return;
    outcome_ = std::move(why);
    kill_at_ = Clock::now() + options_.grace;
    send_all(SIGTERM);
  }

  // To a worker and all of its process group.
  void send_all(int number) {
    for (const Worker& worker : workers_)
      if (worker.pid != 0) kill(-worker.pid, number);
  }

  void reap() {
    const Worker* first = nullptr;
    int first_status = 0;
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto worker = std::ranges::find(workers_, pid, &Worker::pid);
      if (worker == workers_.end()) continue;  // an orphan that we have adopted
      worker->pid = 0;
      for (Source& source : worker->sources) drain(source);
      // Of several that ended together one that was killed is more likely the cause.
      if (code_of(status) != 0 && (first == nullptr || WIFSIGNALED(status))) {
        first = &*worker;
        first_status = status;
      }
    }
    if (first == nullptr || kill_at_) return;
    std::string reason = how_it_ended(first->rank, first_status);
    const std::string short_reason =
        WIFSIGNALED(first_status) || first->last_lines.empty()
            ? reason
            : fmt::format("rank {}: {}", first->rank, first->last_lines.back());
    if (workers_.size() > 1) reason += "; the others were ended";
    if (!first->last_lines.empty()) reason += ". Its last lines on standard error:";
    for (const std::string& line : first->last_lines) reason += "\n  " + line;
    end_workers(
        {.exit_code = code_of(first_status), .reason = std::move(reason), .line = short_reason});
  }

  // What has arrived; bounded, for whoever holds the other end may still write.
  static void drain(Source& source) {
    for (int i = 0; i < 64 && source.pipe.valid() && source.read_some(); ++i) continue;
  }

  const SuperviseOptions& options_;
  Descriptor signals_;
  std::deque<Worker> workers_;  // stays where it is: the line buffers point to it
  TerminalOutput output_;
  Outcome outcome_;
  std::optional<Clock::time_point> kill_at_;  // set: the workers have been told to end
  Clock::time_point next_watch_{};
  bool interrupted_ = false;
  bool hurry_ = false;
};

}  // namespace

Outcome supervise(const SuperviseOptions& options) {
  return Supervisor(options).run();
}

}  // namespace riffle::process
