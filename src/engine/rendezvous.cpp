#include "engine/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>

#include "riffle/error.h"

namespace riffle::engine {

namespace {

constexpr std::uint32_t protocol = 0x52460001;  // changes with the layout of segments

struct Hello {
  std::uint32_t protocol = 0;
  Rank rank = 0;
  int size = 0;
  Member member;
};

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;
};

Address address_of(const std::string& job) {
  const std::string text = fmt::format("riffle/{}/{}", getuid(), job);
  Address address;
  if (text.size() + 1 > sizeof address.name.sun_path)
    usage_error("job name \"{}\" is too long: at most {} bytes", job,
                sizeof address.name.sun_path - 20);
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path + 1, text.data(), text.size());  // after a zero: abstract
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

int new_socket() {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) usage_error("cannot make a socket: {}", std::strerror(errno));
  return fd;
}

bool same_user(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == getuid();
}

}  // namespace

Rendezvous::Rendezvous(const ShmOptions& options)
    : options_(options),
      deadline_(after(options.join_timeout)),
      sockets_(static_cast<std::size_t>(options.size), -1) {
  if (options_.rank == 0)
    listen();
  else
    connect();
}

Rendezvous::~Rendezvous() {
  for (const int fd : sockets_)
    if (fd >= 0) close(fd);
  if (listener_ >= 0) close(listener_);
}

Clock::duration Rendezvous::grace() const {
  return std::chrono::duration_cast<Clock::duration>(options_.failure_timeout + Seconds(2));
}

void Rendezvous::listen() {
  const Address address = address_of(options_.job);
  listener_ = new_socket();
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&address.name), address.length) != 0) {
    const int error = errno;
    close(std::exchange(listener_, -1));
    usage_error("job name \"{}\": {}", options_.job,
                error == EADDRINUSE ? "in use by another job" : std::strerror(error));
  }
  RIFFLE_CHECK_EQ(::listen(listener_, options_.size), 0);
}

void Rendezvous::connect() {
  const Address address = address_of(options_.job);
  while (true) {
    const int fd = new_socket();
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address.name), address.length) == 0 &&
        same_user(fd)) {
      sockets_[0] = fd;
      return;
    }
    close(fd);
    if (Clock::now() > deadline_) absent(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void Rendezvous::absent(Rank rank) const {
  throw CommError(CommFailure::absent, rank, "", {.operation = "join"},
                  fmt::format("job \"{}\" of {} workers, waited {}", options_.job, options_.size,
                              print(options_.join_timeout)));
}

void Rendezvous::poll_or_throw(int fd, short events, Rank rank) const {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    if (left <= 0) absent(rank);
    pollfd watched{.fd = fd, .events = events, .revents = 0};
    const int ready = poll(&watched, 1, static_cast<int>(std::min<long>(left, 60'000)));
    if (ready > 0) return;
  }
}

void Rendezvous::write_all(int fd, const void* data, std::size_t bytes, Rank rank) const {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    poll_or_throw(fd, POLLOUT, rank);
    const ssize_t done = ::send(fd, from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done < 0 && errno != EAGAIN && errno != EINTR) absent(rank);
    if (done <= 0) continue;
    from += done;
    bytes -= static_cast<std::size_t>(done);
  }
}

void Rendezvous::read_all(int fd, void* data, std::size_t bytes, Rank rank) const {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    poll_or_throw(fd, POLLIN, rank);
    const ssize_t done = recv(fd, to, bytes, MSG_DONTWAIT);
    if (done == 0 || (done < 0 && errno != EAGAIN && errno != EINTR)) absent(rank);
    if (done < 0) continue;
    to += done;
    bytes -= static_cast<std::size_t>(done);
  }
}

std::vector<Member> Rendezvous::exchange(Member own) {
  std::vector<Member> members(sockets_.size());
  const Hello hello{protocol, options_.rank, options_.size, own};
  if (options_.rank != 0) {
    write_all(sockets_[0], &hello, sizeof hello, 0);
    deadline_ += grace();
    Rank missing = -1;
    read_all(sockets_[0], &missing, sizeof missing, 0);
    if (missing >= 0) absent(missing);
    read_all(sockets_[0], members.data(), members.size() * sizeof(Member), 0);
    return members;
  }
  members[0] = own;
  Rank missing = -1;
  try {
    gather(members);
  } catch (const CommError& error) {
    missing = error.rank();
  }
  // Who comes from here on wants the job's next engine.
  close(std::exchange(listener_, -1));
  deadline_ = Clock::now() + grace();
  for (std::size_t r = 1; r < members.size(); ++r) {
    if (sockets_[r] < 0) continue;
    write_all(sockets_[r], &missing, sizeof missing, static_cast<Rank>(r));
    if (missing >= 0) continue;
    write_all(sockets_[r], members.data(), members.size() * sizeof(Member), static_cast<Rank>(r));
  }
  if (missing >= 0) absent(missing);
  return members;
}

// Rank 0: what each of the others says of itself, as they come.
void Rendezvous::gather(std::vector<Member>& members) {
  for (std::size_t joined = 1; joined < members.size(); ++joined) {
    const auto missing = std::find(sockets_.begin() + 1, sockets_.end(), -1);
    const Rank first = static_cast<Rank>(missing - sockets_.begin());
    poll_or_throw(listener_, POLLIN, first);
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    RIFFLE_CHECK(fd >= 0);
    Hello theirs;
    read_all(fd, &theirs, sizeof theirs, first);
    const bool valid = same_user(fd) && theirs.protocol == protocol &&
                       theirs.size == options_.size && theirs.rank > 0 &&
                       theirs.rank < options_.size &&
                       sockets_[static_cast<std::size_t>(theirs.rank)] < 0;
    if (!valid) {
      close(fd);
      usage_error("job \"{}\" of {} workers: process {} joined as rank {} of {}", options_.job,
                  options_.size, theirs.member.pid, theirs.rank, theirs.size);
    }
    sockets_[static_cast<std::size_t>(theirs.rank)] = fd;
    members[static_cast<std::size_t>(theirs.rank)] = theirs.member;
  }
}

void Rendezvous::meet() {
  char token = 1;
  if (options_.rank != 0) {
    write_all(sockets_[0], &token, 1, 0);
    read_all(sockets_[0], &token, 1, 0);
    return;
  }
  for (std::size_t r = 1; r < sockets_.size(); ++r)
    read_all(sockets_[r], &token, 1, static_cast<Rank>(r));
  for (std::size_t r = 1; r < sockets_.size(); ++r)
    write_all(sockets_[r], &token, 1, static_cast<Rank>(r));
}

}  // namespace riffle::engine
