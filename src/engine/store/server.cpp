// One thread, one epoll, any number of clients. A client costs its socket and what it has sent; it
// is dropped when it is slower than message_timeout, speaks nonsense, or goes away.
#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include "engine/store/clients.h"
#include "engine/store/refusals.h"
#include "engine/store/socket.h"

namespace riffle {

using store::Client;
using store::Clients;
using store::Phase;
using store::Refusal;

namespace {

constexpr Clients::Id listener_id = 0;
constexpr Clients::Id stop_id = 1;
constexpr Seconds accept_pause = milliseconds(100);  // while no descriptor is left

std::uint32_t events_of(Phase phase) {
  if (phase == Phase::writing) return EPOLLOUT | EPOLLRDHUP;
  if (phase == Phase::waiting) return EPOLLRDHUP;
  return EPOLLIN;
}

void to_standard_error(const std::string& line) {
  fmt::print(stderr, "riffle: {}\n", line);
}

StoreServerOptions checked(StoreServerOptions options) {
  if (const auto problem = store::token_problem(options.token))
    usage_error("the store cannot take {}", *problem);
  return options;
}

// False when the client has gone.
bool receive_some(Client& client) {
  std::array<char, std::size_t{64} * 1024> bytes;
  const ssize_t got = recv(client.socket.get(), bytes.data(), bytes.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  client.session.receive({bytes.data(), static_cast<std::size_t>(got)});
  return true;
}

bool send_some(Client& client) {
  const std::string_view bytes = client.session.output();
  if (bytes.empty()) return true;
  const ssize_t sent = send(client.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  client.session.sent(static_cast<std::size_t>(sent));
  return true;
}

}  // namespace

class StoreServer::Loop {
 public:
  explicit Loop(const StoreServerOptions& options)
      : options_(checked(options)),
        table_(options.capacity),
        refusals_(options.log ? options.log : to_standard_error),
        listener_(store::listen_on(options.bind)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        address_(store::local_address(listener_.get())) {
    if (!epoll_.valid() || !stop_.valid())
      throw std::runtime_error(fmt::format("the store cannot start: {}", std::strerror(errno)));
    store::raise_open_files(options.max_clients + 64);
    control(EPOLL_CTL_ADD, listener_.get(), EPOLLIN, listener_id);
    control(EPOLL_CTL_ADD, stop_.get(), EPOLLIN, stop_id);
    // The program's signals are the business of its own threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  ~Loop() {
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }

  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  [[nodiscard]] const StoreAddress& address() const { return address_; }
  [[nodiscard]] int clients() const { return count_.load(std::memory_order_relaxed); }

 private:
  void control(int operation, int fd, std::uint32_t events, Clients::Id id) const {
    epoll_event event{.events = events, .data = {.u64 = id}};
    epoll_ctl(epoll_.get(), operation, fd, &event);
  }

  void run() {
    std::array<epoll_event, 128> events{};
    for (;;) {
      const int ready = epoll_wait(epoll_.get(), events.data(), events.size(), until_next());
      for (int i = 0; i < ready; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        if (event.data.u64 == stop_id) return;
        if (event.data.u64 == listener_id)
          accept_some();
        else
          handle(event.data.u64, [&](Client& client) { return serve(client, event.events); });
        wake_waiting();
      }
      expire();
      wake_waiting();
    }
  }

  [[nodiscard]] int until_next() const {
    const Deadline next = std::min(clients_.next_due(), accept_again_);
    if (next == Deadline::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
  }

  void accept_some() {
    for (int i = 0; i < 64; ++i) {
      std::string peer;
      Descriptor socket = store::accept_from(listener_.get(), peer);
      if (socket.valid()) {
        add(std::move(socket), std::move(peer));
      } else if (errno == EAGAIN || errno == EINTR) {
        return;
      } else if (errno != ECONNABORTED) {
        refuse("a connection", std::strerror(errno));
        control(EPOLL_CTL_MOD, listener_.get(), 0, listener_id);
        accept_again_ = after(accept_pause);
        return;
      }
    }
  }

  void add(Descriptor socket, const std::string& peer) {
    if (clients_.size() >= options_.max_clients)
      return refuse(peer, fmt::format("{} clients are connected", options_.max_clients));
    const Clients::Id id = next_id_++;
    const int fd = socket.get();
    Client& client = clients_.add(id, std::move(socket), peer, table_, options_.token);
    client.events = events_of(client.phase);
    control(EPOLL_CTL_ADD, fd, client.events, id);
    clients_.set_due(id, client, after(options_.message_timeout));
    count_ = clients_.size();
  }

  // Does something for a client, if it is still there; the body returns false when it has gone.
  // Whatever goes wrong ends this client alone.
  template <typename Body>
  void handle(Clients::Id id, const Body& body) {
    Client* client = clients_.find(id);
    if (client == nullptr) return;
    try {
      if (body(*client)) return settle(id, *client);
    } catch (const Refusal& refusal) {
      refuse(client->peer, refusal.what());
      send_some(*client);
    } catch (const std::exception& error) {
      refuse(client->peer, error.what());
    }
    clients_.drop(id);
    count_ = clients_.size();
  }

  bool serve(Client& client, std::uint32_t events) {
    if ((events & EPOLLIN) != 0) return receive_some(client) && proceed(client);
    return (events & EPOLLOUT) != 0 && proceed(client);  // else it has hung up
  }

  // Handles what has arrived, as far as the client takes its replies.
  bool proceed(Client& client) {
    std::optional<std::string> changed;
    while (send_some(client)) {
      if (!client.session.advance(changed)) return true;
      client.phase = Phase::idle;  // the next message has a time of its own
      if (changed) changed_.insert(std::move(*changed));
    }
    return false;
  }

  // Makes epoll, timers and waits follow what the client is doing now.
  void settle(Clients::Id id, Client& client) {
    const Phase phase = phase_of(client.session);
    if (events_of(phase) != client.events) {
      client.events = events_of(phase);
      control(EPOLL_CTL_MOD, client.socket.get(), client.events, id);
    }
    if (phase == client.phase && phase != Phase::idle) return;
    client.phase = phase;
    const bool waits = phase == Phase::waiting;
    clients_.set_wait(id, client, waits ? client.session.waiting()->key : std::string());
    const Seconds time = waits ? milliseconds(client.session.waiting()->timeout_milliseconds)
                               : options_.message_timeout;
    clients_.set_due(id, client, phase == Phase::idle ? Deadline::max() : after(time));
  }

  void wake_waiting() {
    while (!changed_.empty()) {
      const std::string key = std::move(changed_.extract(changed_.begin()).value());
      for (const Clients::Id id : clients_.waiting_for(key))
        handle(id, [&](Client& client) {
          client.session.key_changed();
          return proceed(client);
        });
    }
  }

  void expire() {
    const Deadline now = Clock::now();
    if (now >= accept_again_) {
      accept_again_ = Deadline::max();
      control(EPOLL_CTL_MOD, listener_.get(), EPOLLIN, listener_id);
    }
    while (clients_.next_due() <= now)
      handle(clients_.first_due(), [&](Client& client) {
        if (client.phase != Phase::waiting) throw Refusal("it is too slow");
        client.session.give_up();
        return proceed(client);
      });
  }

  void refuse(const std::string& peer, std::string_view why) {
    refusals_.report(fmt::format("store {} refused {}: {}", print(address_), peer, why),
                     Clock::now());
  }

  StoreServerOptions options_;
  store::Table table_;
  store::Refusals refusals_;
  Descriptor listener_;
  Descriptor epoll_;
  Descriptor stop_;
  StoreAddress address_;
  std::thread thread_;
  std::atomic<int> count_ = 0;
  // Below: the thread's own.
  Clients clients_;
  Clients::Id next_id_ = stop_id + 1;
  std::set<std::string> changed_;
  Deadline accept_again_ = Deadline::max();
};

StoreServer::StoreServer(const StoreServerOptions& options)
    : loop_(std::make_unique<Loop>(options)) {}
StoreServer::~StoreServer() = default;

StoreAddress StoreServer::address() const {
  return loop_->address();
}

int StoreServer::clients() const {
  return loop_->clients();
}

}  // namespace riffle
