#include "process/terminal_output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace riffle::process {

namespace {

constexpr std::size_t room = std::size_t{1} << 20;

// Whole lines that fit one write which cannot block after poll; of a longer line, a piece.
std::size_t next_piece(std::string_view pending) {
  if (pending.size() <= PIPE_BUF) return pending.size();
  const std::size_t line_end = pending.rfind('\n', PIPE_BUF - 1);
  return line_end == std::string_view::npos ? PIPE_BUF : line_end + 1;
}

}  // namespace

TerminalOutput::TerminalOutput() {
  streams_[standard_output].fd = STDOUT_FILENO;
  streams_[standard_error].fd = STDERR_FILENO;
  for (State& stream : streams_) stream.terminal = ::isatty(stream.fd) == 1;
}

void TerminalOutput::add(Stream stream, std::string_view prefix, std::string_view line) {
  State& state = streams_[stream];
  if (state.closed) return;
  state.lines.append(prefix).append(line).push_back('\n');
}

bool TerminalOutput::has_room() const {
  return std::ranges::all_of(streams_, [](const State& s) { return s.pending().size() < room; });
}

bool TerminalOutput::empty() const {
  return std::ranges::all_of(streams_, [](const State& s) { return s.pending().empty(); });
}

pollfd TerminalOutput::wish(Stream stream) const {
  const State& state = streams_[stream];
  const bool wants = !state.pending().empty() && !other(stream).mid_line;
  return {.fd = wants ? state.fd : -1, .events = POLLOUT, .revents = 0};
}

void TerminalOutput::write_some(Stream stream, short events) {
  State& state = streams_[stream];
  const std::string_view pending = state.pending();
  if (events == 0 || pending.empty() || other(stream).mid_line) return;
  const ssize_t count = ::write(state.fd, pending.data(), next_piece(pending));
  if (count < 0 && errno != EAGAIN && errno != EINTR)
    state = {.fd = state.fd, .terminal = state.terminal, .closed = true};
  if (count <= 0) return;
  state.mid_line = pending[static_cast<std::size_t>(count) - 1] != '\n';
  state.written += static_cast<std::size_t>(count);
  if (state.written < state.lines.size() && state.written < room) return;
  state.lines.erase(0, state.written);
  state.written = 0;
}

}  // namespace riffle::process
