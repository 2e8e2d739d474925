// Lines on their way to our standard output and error. Nothing here blocks: a reader that has
// stopped reading must not keep us from ending our workers. Both streams may be one and the same
// file, so one never writes into the middle of the other's line.
#pragma once

#include <poll.h>

#include <array>
#include <string>
#include <string_view>

namespace riffle::process {

class TerminalOutput {
 public:
  enum Stream { standard_output, standard_error };

  TerminalOutput();

  // Colours only where a person looks.
  [[nodiscard]] bool is_terminal(Stream stream) const { return streams_[stream].terminal; }
  void add(Stream stream, std::string_view prefix, std::string_view line);

  // Whether there is room for more; whoever fills it should stop reading while there is not.
  [[nodiscard]] bool has_room() const;
  [[nodiscard]] bool empty() const;
  // The reader of standard output has gone: what is added is dropped.
  [[nodiscard]] bool closed() const { return streams_[standard_output].closed; }

  // What poll should wait for (fd -1: nothing), and what then to do.
  [[nodiscard]] pollfd wish(Stream stream) const;
  void write_some(Stream stream, short events);

 private:
  struct State {
    int fd = -1;
    bool terminal = false;
    bool closed = false;
    bool mid_line = false;
    std::string lines = {};  // of which the first `written` bytes are written
    std::size_t written = 0;

    [[nodiscard]] std::string_view pending() const {
      return std::string_view(lines).substr(written);
    }
  };
  [[nodiscard]] const State& other(Stream stream) const { return streams_[1 - stream]; }
  std::array<State, 2> streams_;
};

}  // namespace riffle::process
