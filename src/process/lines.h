// Bytes in, whole lines out.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace riffle::process {

// A line ends with "\n" or "\r\n". A bare "\r" is a progress bar that rewrites its line: what was
// there is given out at most once a second, else forgotten, as on a terminal. A line above the
// limit is given out in pieces.
class LineBuffer {
 public:
  using Clock = std::chrono::steady_clock;
  using Emit = std::function<void(std::string_view line)>;
  static constexpr std::size_t limit = 64 * 1024;

  explicit LineBuffer(Emit emit) : emit_(std::move(emit)) {}
  void feed(std::string_view bytes, Clock::time_point now);
  // The stream has ended: what is left is a line.
  void finish();

 private:
  void give_out();
  void rewritten(Clock::time_point now);

  Emit emit_;
  std::string line_;
  bool carriage_return_ = false;
  Clock::time_point next_progress_{};
};

}  // namespace riffle::process
