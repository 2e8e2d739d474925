#include "engine/store/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "engine/store/socket.h"

namespace riffle::store {

namespace {

[[noreturn]] void broken(const Question& question, std::string_view detail) {
  throw StoreError(CommFailure::died, question.store, question.asked, detail);
}

[[noreturn]] void late(const Question& question) {
  throw StoreError(CommFailure::timed_out, question.store, question.asked, "no answer");
}

void send_all(int socket, std::string_view bytes, const Question& question, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0)
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    else if (errno != EAGAIN && errno != EINTR)
      broken(question, std::strerror(errno));
    else if (!wait_for(socket, POLLOUT, deadline))
      late(question);
  }
}

std::string receive_body(int socket, const Question& question, Deadline deadline) {
  Framer framer(max_message);
  std::array<char, 4096> bytes;
  for (;;) {
    const ssize_t got = recv(socket, bytes.data(), bytes.size(), 0);
    if (got == 0) broken(question, "it closed the connection");
    if (got < 0 && errno != EAGAIN && errno != EINTR) broken(question, std::strerror(errno));
    if (got < 0 && !wait_for(socket, POLLIN, deadline)) late(question);
    if (got > 0) framer.feed({bytes.data(), static_cast<std::size_t>(got)});
    if (auto body = framer.next()) return std::move(*body);
  }
}

}  // namespace

Connection::Connection(const Question& question, const std::string& token, Deadline deadline) {
  using std::chrono::milliseconds;
  milliseconds pause(10);
  std::string problem = "the deadline has passed";
  for (;;) {
    socket_ = connect_to(question.store, deadline, problem);
    if (socket_.valid() && handshake(question, token, deadline, problem)) return;
    if (Clock::now() + pause >= deadline)
      throw StoreError(CommFailure::absent, question.store, question.asked, problem);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, milliseconds(500));
  }
}

// False, with the problem, when trying again may help: a server that goes away or is full closes
// the connection without a word.
bool Connection::handshake(const Question& question, const std::string& token, Deadline deadline,
                           std::string& problem) {
  try {
    const Reply reply = call(encode_hello(token), question, deadline);
    if (reply.status == Status::ok) return true;
    usage_error(
        "store {} refused this process: {}; the workers of a job and its store must share one "
        "RIFFLE_TOKEN",
        print(question.store), reply.value.value_or("no reason"));
  } catch (const StoreError& error) {
    if (error.failure() == CommFailure::mismatch) throw;
    problem = error.what();
    return false;
  }
}

Reply Connection::call(const std::string& message, const Question& question, Deadline deadline) {
  send_all(socket_.get(), message, question, deadline);
  try {
    return decode_reply(receive_body(socket_.get(), question, deadline));
  } catch (const Refusal& refusal) {
    throw StoreError(CommFailure::mismatch, question.store, question.asked, refusal.what());
  }
}

bool Connection::fresh() const {
  pollfd one{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  return poll(&one, 1, 0) == 0;
}

}  // namespace riffle::store
