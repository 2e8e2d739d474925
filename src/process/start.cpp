#include "process/start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/text.h"
#include "riffle/error.h"

namespace riffle::process {

namespace {

struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Between fork and exec only what is safe in a process that had threads; returns only on failure.
void become(char* const* command, char* const* environment, int input, int output, int error,
            pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it ended before we asked to be told
  for (const int number : {SIGTTOU, SIGPIPE}) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
      dup2(error, STDERR_FILENO) < 0)
    return;
  execvpe(command[0], command, environment);
}

}  // namespace

Started start_process(const std::vector<std::string>& command,
                      const std::vector<std::string>& environment) {
  const auto arguments = pointers(command);
  const auto variables = pointers(environment);
  const Descriptor input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Pipe output = make_pipe();
  Pipe error = make_pipe();
  Pipe failure = make_pipe();  // carries errno when exec fails, and closes when it succeeds
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error(fmt::format("cannot start: {}", std::strerror(errno)));
  if (pid == 0) {
    become(arguments.data(), variables.data(), input.get(), output.write_end.get(),
           error.write_end.get(), parent);
    const int code = errno;
    static_cast<void>(!write(failure.write_end.get(), &code, sizeof code));
    _exit(127);
  }
  setpgid(pid, pid);
  failure.write_end.reset();
  int code = 0;
  if (read(failure.read_end.get(), &code, sizeof code) == sizeof code) {
    waitpid(pid, nullptr, 0);
    usage_error("cannot run {}: {}", quote(command.front()), std::strerror(code));
  }
  for (const int fd : {output.read_end.get(), error.read_end.get()}) fcntl(fd, F_SETFL, O_NONBLOCK);
  return {pid, std::move(output.read_end), std::move(error.read_end)};
}

}  // namespace riffle::process
