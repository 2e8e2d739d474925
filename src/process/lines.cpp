#include "process/lines.h"

namespace riffle::process {

void LineBuffer::feed(std::string_view bytes, Clock::time_point now) {
  for (const char c : bytes) {
    if (carriage_return_ && c != '\n' && c != '\r') rewritten(now);
    carriage_return_ = c == '\r';
    if (c == '\n')
      give_out();
    else if (c != '\r')
      line_.push_back(c);
    if (line_.size() == limit) give_out();
  }
}

void LineBuffer::finish() {
  if (!line_.empty()) give_out();
  carriage_return_ = false;
}

void LineBuffer::give_out() {
  emit_(line_);
  line_.clear();
}

void LineBuffer::rewritten(Clock::time_point now) {
  if (now < next_progress_ || line_.empty()) {
    line_.clear();
    return;
  }
  give_out();
  next_progress_ = now + std::chrono::seconds(1);
}

}  // namespace riffle::process
