#include "distributed/message.h"

#include <fmt/format.h>

#include <algorithm>

namespace riffle::distributed {

void Message::start(Rank peer, Request letter, Request data) {
  const std::scoped_lock lock(mutex_);
  what_.peer = peer;
  letter_ = letter;
  data_ = data;
  started_ = true;
}

// Runs a step that says whether all is done; an error is the end too.
template <typename Step>
bool Message::guarded(const Step& step) {
  if (finished_) return true;
  try {
    if (!step()) return false;
    finish(nullptr);
  } catch (const CommError& error) {
    cancel();
    finish(error.group().empty()
               ? std::make_exception_ptr(CommError(error.failure(), error.rank(), error.host(),
                                                   context(), ""))  // test() knows no call
               : std::current_exception());
  } catch (...) {
    cancel();
    finish(std::current_exception());
  }
  return true;
}

bool Message::test() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return finished_;  // somebody waits for it
  return guarded([&] {
    throw_if_late();
    if (!started_) return false;
    if (!letter_.empty()) {
      if (!engine_.test(letter_)) return false;
      check_letter();
    }
    return engine_.test(data_);
  });
}

bool Message::wait(Deadline until) {
  const std::scoped_lock lock(mutex_);
  return guarded([&] {
    const std::array watch{what_.peer};
    const Wait how{.deadline = std::min(until, what_.deadline),
                   .context = context(),
                   .watch = watch,
                   .background = false};
    const auto done = [&](Request& request) {
      while (!request.empty() && !engine_.test(request)) {
        try {
          engine_.await_any(std::span(&request, 1), how);
        } catch (const CommError& error) {
          if (error.failure() != CommFailure::timed_out || Clock::now() >= what_.deadline) throw;
          return false;  // the caller has waited long enough
        }
      }
      return true;
    };
    if (!letter_.empty()) {
      if (!done(letter_)) return false;
      check_letter();
    }
    return done(data_);
  });
}

void Message::fail(const std::exception_ptr& error) {
  const std::scoped_lock lock(mutex_);
  if (finished_) return;
  cancel();
  finish(error);
}

void Message::finish(const std::exception_ptr& error) {
  const Done done = std::move(done_);
  finished_ = true;
  if (done) done(error);
}

void Message::check_letter() const {
  if (envelope_ == letter()) return;
  throw CommError(CommFailure::mismatch, what_.peer, engine_.host(what_.peer), context(),
                  fmt::format("it sent {} bytes of type {}; rank {} expects {} bytes of type {}",
                              envelope_.bytes, envelope_.dtype, engine_.rank(), letter().bytes,
                              letter().dtype));
}

void Message::throw_if_late() const {
  if (Clock::now() < what_.deadline) return;
  throw CommError(CommFailure::timed_out, what_.peer,
                  what_.peer >= 0 ? engine_.host(what_.peer) : "", context(), "");
}

void Message::cancel() {
  for (Request* request : {&letter_, &data_})
    if (!request->empty()) engine_.cancel(*request);
}

}  // namespace riffle::distributed
