#include "lab/transfers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <stdexcept>
#include <thread>

namespace riffle::lab {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint16_t transfer_port = 7000;
constexpr Seconds patience{60};

// What had arrived when the window began and when it ended, and when that was seen.
struct Result {
  Nanoseconds first;
  Nanoseconds last;
  double first_bytes;
  double last_bytes;
  Nanoseconds end;  // of the flow
};

// What processes share; the results of the flows stand behind it.
struct Shared {
  std::atomic<int> ready[3];
  std::atomic<Nanoseconds> start;
  Result& result(std::size_t flow) { return reinterpret_cast<Result*>(this + 1)[flow]; }
};

void must(bool done, const char* what) {
  if (!done) throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

void meet(std::atomic<int>& ready, int all) {
  ready.fetch_add(1);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(patience);
  while (ready.load() < all) {
    if (Clock::now() > deadline) throw std::runtime_error("the others did not come");
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

sockaddr_in address(int host) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(transfer_port);
  result.sin_addr.s_addr = htonl(first_address + static_cast<std::uint32_t>(host));
  return result;
}

// One end of a flow.
struct End {
  Descriptor socket;
  int flow = 0;
  bool sends = false;
  double left = 0;
  double total = 0;
};

class Station {
 public:
  Station(int host, const std::vector<Flow>& flows, Shared& shared, int stations,
          const TransferOptions& options)
      : host_(host),
        flows_(flows),
        shared_(shared),
        stations_(stations),
        options_(options),
        window_(static_cast<Nanoseconds>(options.window.count() * 1e9)),
        buffer_(256 << 10) {}

  void run() {
    connect_all();
    for (End& end : ends_) end.left = end.total = std::floor(options_.warm_up);
    move(false);
    meet(shared_.ready[1], stations_);
    // What was acknowledged last is on its way; then all begin at one moment.
    if (host_ == flows_.front().from) shared_.start = clock_now() + 200'000'000;
    meet(shared_.ready[2], stations_);
    for (End& end : ends_)
      end.left = end.total = std::floor(flows_[static_cast<std::size_t>(end.flow)].bytes);
    std::this_thread::sleep_until(
        Clock::time_point(std::chrono::nanoseconds(shared_.start.load())));
    move(true);
  }

 private:
  void connect_all() {
    const Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    must(listener.valid(), "making a socket");
    const int yes = 1;
    setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const sockaddr_in here = address(host_);
    must(bind(listener.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0 &&
             listen(listener.get(), 512) == 0,
         "listening");
    meet(shared_.ready[0], stations_);
    for (std::size_t i = 0; i < flows_.size(); ++i)
      if (flows_[i].from == host_) connect_to(static_cast<int>(i));
    for (const Flow& flow : flows_)
      if (flow.to == host_) accept_from(listener.get());
    for (const End& end : ends_) fcntl(end.socket.get(), F_SETFL, O_NONBLOCK);
  }

  void connect_to(int flow) {
    Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    must(made.valid(), "making a socket");
    const sockaddr_in there = address(flows_[static_cast<std::size_t>(flow)].to);
    must(connect(made.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0,
         "connecting");
    must(::send(made.get(), &flow, sizeof flow, MSG_NOSIGNAL) == sizeof flow, "greeting");
    ends_.push_back({.socket = std::move(made), .flow = flow, .sends = true});
  }

  void accept_from(int listener) {
    Descriptor taken(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    int flow = 0;
    must(taken.valid() && recv(taken.get(), &flow, sizeof flow, MSG_WAITALL) == sizeof flow,
         "accepting");
    ends_.push_back({.socket = std::move(taken), .flow = flow, .sends = false});
  }

  // What an end may send now.
  [[nodiscard]] double room_of(const End& end) const {
    if (!end.sends || options_.most_in_flight == 0) return end.left;
    int unacknowledged = 0;
    must(ioctl(end.socket.get(), SIOCOUTQ, &unacknowledged) == 0, "looking at a socket");
    return std::min(end.left, static_cast<double>(options_.most_in_flight - unacknowledged));
  }

  // Until nothing is left at any end.
  void move(bool counts) {
    std::vector<pollfd> watched(ends_.size());
    for (;;) {
      bool any = false;
      bool held = false;  // by the limit of what may be on its way: nobody wakes us then
      for (std::size_t i = 0; i < ends_.size(); ++i) {
        const bool wants = ends_[i].left > 0;
        const bool may = wants && room_of(ends_[i]) > 0;
        any = any || wants;
        held = held || (wants && !may);
        watched[i] = {.fd = may ? ends_[i].socket.get() : -1,
                      .events = static_cast<short>(ends_[i].sends ? POLLOUT : POLLIN),
                      .revents = 0};
      }
      if (!any) return;
      const timespec limit{.tv_sec = held ? 0 : 30, .tv_nsec = held ? 200'000 : 0};
      const int found = ppoll(watched.data(), watched.size(), &limit, nullptr);
      must(found > 0 || (found == 0 && held), "waiting for the network");
      for (std::size_t i = 0; i < ends_.size(); ++i)
        if (watched[i].revents != 0) move_some(ends_[i], counts);
    }
  }

  void move_some(End& end, bool counts) {
    const auto size =
        static_cast<std::size_t>(std::min(room_of(end), static_cast<double>(buffer_.size())));
    const ssize_t done =
        end.sends ? ::send(end.socket.get(), buffer_.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT)
                  : recv(end.socket.get(), buffer_.data(), size, MSG_DONTWAIT);
    must(done > 0 || (done < 0 && errno == EAGAIN), "moving bytes");
    if (done <= 0) return;
    end.left -= static_cast<double>(done);
    if (!counts || end.sends) return;
    note(shared_.result(static_cast<std::size_t>(end.flow)), end.total - end.left);
  }

  // While all flows run; what ends later than others has the network for itself in the end.
  void note(Result& result, double arrived) const {
    const Nanoseconds now = clock_now();
    const Nanoseconds start = shared_.start.load();
    result.end = now;
    if (now - start < window_ / 5 || (now - start > window_ && result.last > result.first)) return;
    if (result.first == 0) {
      result.first = now;
      result.first_bytes = arrived;
    }
    result.last = now;
    result.last_bytes = arrived;
  }

  int host_;
  const std::vector<Flow>& flows_;
  Shared& shared_;
  int stations_;
  const TransferOptions& options_;
  Nanoseconds window_;
  std::vector<End> ends_;
  std::vector<std::byte> buffer_;
};

}  // namespace

Transferred transfer(const Hosts& hosts, const std::vector<Flow>& flows,
                     const TransferOptions& options) {
  std::vector<int> which;
  for (const Flow& flow : flows)
    for (const int host : {flow.from, flow.to})
      if (std::ranges::find(which, host) == which.end()) which.push_back(host);
  const std::size_t size = sizeof(Shared) + flows.size() * sizeof(Result);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  must(memory != MAP_FAILED, "sharing memory");
  auto& shared = *static_cast<Shared*>(memory);  // zeros are what everything begins with
  run_on_hosts(
      hosts, which,
      [&](int index) {
        Station(which[static_cast<std::size_t>(index)], flows, shared,
                static_cast<int>(which.size()), options)
            .run();
      },
      Seconds(170));
  Transferred done;
  Nanoseconds end = 0;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const Result& result = shared.result(i);
    const double seen = static_cast<double>(result.last - result.first) * 1e-9;
    done.rates.push_back(seen > 0 ? (result.last_bytes - result.first_bytes) / seen : 0);
    end = std::max(end, result.end);
  }
  done.time = Seconds(static_cast<double>(end - shared.start.load()) * 1e-9);
  munmap(memory, size);
  return done;
}

}  // namespace riffle::lab
