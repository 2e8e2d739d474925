#include "lab/switch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace riffle::lab {

namespace {

// Sleeping is not exact: the switch is awake a little early and looks at the clock for the rest.
// A processor that slept for long wakes up late. After a short sleep it does not, and there must be
// little to look at: a switch that never sleeps takes a core from the hosts, and what real-time
// priority may use up is limited, after which the kernel stops it for 50 ms.
constexpr Nanoseconds long_sleep = 300'000;
constexpr Nanoseconds early_after_long = 30'000;
constexpr Nanoseconds early_after_short = 5'000;
// Pieces taken from a device before others are looked at again.
constexpr int most_reads = 64;
constexpr Nanoseconds longest_sleep = 200'000'000;
// Counters are copied for who looks now and then, and before a long sleep: copying them for every
// packet would cost more than the packet.
constexpr Nanoseconds publish_every = 1'000'000;

Nanoseconds shortest_latency(const Wiring& wiring) {
  Nanoseconds shortest = Fabric::never;
  for (const auto& path : wiring.paths) {
    Nanoseconds sum = 0;
    for (const int port : path) sum += wiring.ports[static_cast<std::size_t>(port)].latency;
    if (!path.empty()) shortest = std::min(shortest, sum);
  }
  return shortest == Fabric::never ? 0 : shortest;
}

class Loop {
 public:
  Loop(const Wiring& wiring, std::span<const Descriptor> devices, int commands,
       SwitchReport& report, Counters* counters, std::uint64_t seed)
      : fabric_(wiring, seed),
        hosts_(wiring.hosts),
        late_(std::max<Nanoseconds>(shortest_latency(wiring) / 10, 50'000)),
        together_(std::min<Nanoseconds>(shortest_latency(wiring) / 100, 20'000)),
        report_(report),
        counters_(counters) {
    for (const Descriptor& device : devices)
      watched_.push_back({.fd = device.get(), .events = POLLIN, .revents = 0});
    watched_.push_back({.fd = commands, .events = POLLIN, .revents = 0});
  }

  void run() {
    while (!over_) {
      wait();
      for (std::size_t i = 0; i + 1 < watched_.size(); ++i)
        if (watched_[i].revents != 0) read_from(static_cast<int>(i));
      if (watched_.back().revents != 0) take_commands();
      const Nanoseconds now = clock_now();
      do_changes(now);
      if (fabric_.next() <= now)
        fabric_.run(now + together_,
                    [&](const Packet& packet, Nanoseconds due) { write_to(packet, due); });
      if (now - published_ > publish_every) publish();
    }
  }

 private:
  void wait() {
    const Nanoseconds next = std::min(fabric_.next(), next_change());
    timespec limit{.tv_sec = 0, .tv_nsec = longest_sleep};
    if (next != Fabric::never) {
      const Nanoseconds left = next - clock_now();
      const Nanoseconds early = left > long_sleep ? early_after_long : early_after_short;
      limit.tv_nsec = std::clamp<Nanoseconds>(left - early, 0, longest_sleep);
    }
    if (limit.tv_nsec > publish_every) publish();
    ppoll(watched_.data(), watched_.size(), &limit, nullptr);
  }

  void read_from(int host) {
    for (int i = 0; i < most_reads; ++i) {
      const ssize_t got =
          ::read(watched_[static_cast<std::size_t>(host)].fd, buffer_.data(), buffer_.size());
      if (got <= 0) return;
      Packet packet;
      packet.from = host;
      const auto bytes = std::span(buffer_).first(static_cast<std::size_t>(got));
      if (!parse(bytes, hosts_, packet)) {
        report_.unread.fetch_add(1, std::memory_order_relaxed);
        continue;
      }
      packet.bytes.assign(bytes.begin(), bytes.end());
      fabric_.send(std::move(packet), clock_now() - bias_);
    }
  }

  void write_to(const Packet& packet, Nanoseconds due) {
    const int device = watched_[static_cast<std::size_t>(packet.to)].fd;
    static_cast<void>(!::write(device, packet.bytes.data(), packet.bytes.size()));
    report_.delivered.fetch_add(1, std::memory_order_relaxed);
    if (clock_now() - due > late_) report_.late.fetch_add(1, std::memory_order_relaxed);
  }

  void take_commands() {
    PortChange change;
    const ssize_t got = recv(watched_.back().fd, &change, sizeof change, MSG_DONTWAIT);
    if (got == 0 || (got > 0 && change.what == PortChange::end)) over_ = true;
    if (got != sizeof change) return;
    const auto later = std::ranges::upper_bound(changes_, change.at, {}, &PortChange::at);
    changes_.insert(later, change);
  }

  [[nodiscard]] Nanoseconds next_change() const {
    return changes_.empty() ? Fabric::never : changes_.front().at;
  }

  void do_changes(Nanoseconds now) {
    while (next_change() <= now) {
      apply(changes_.front(), now);
      changes_.erase(changes_.begin());
    }
  }

  void apply(const PortChange& change, Nanoseconds now) {
    const auto time = static_cast<Nanoseconds>(std::llround(change.value));
    switch (change.what) {
      case PortChange::bandwidth:
        return fabric_.set_bandwidth(change.port, change.value);
      case PortChange::latency:
        return fabric_.set_latency(change.port, time);
      case PortChange::jitter:
        return fabric_.set_jitter(change.port, time);
      case PortChange::loss:
        return fabric_.set_loss(change.port, change.value);
      case PortChange::load:
        return fabric_.set_load(change.port, change.value, now);
      case PortChange::cut:
        return fabric_.cut(change.port);
      case PortChange::repair:
        return fabric_.repair(change.port);
      case PortChange::bias:
        bias_ = time;
        return;
      case PortChange::end:
        over_ = true;
    }
  }

  void publish() {
    published_ = clock_now();
    for (int port = 0; port < static_cast<int>(fabric_.wiring().ports.size()); ++port)
      counters_[port] = fabric_.counters(port);
  }

  Fabric fabric_;
  int hosts_;
  Nanoseconds late_;
  Nanoseconds together_;  // what is due so soon after something else is done with it
  SwitchReport& report_;
  Counters* counters_;
  std::vector<pollfd> watched_;      // the devices, then our commands
  std::vector<PortChange> changes_;  // by time
  std::array<std::byte, 70'000> buffer_{};
  Nanoseconds bias_ = 0;  // what moving a packet takes
  Nanoseconds published_ = 0;
  bool over_ = false;
};

// Workers must not delay the network, and processors that sleep deeply wake up late. Both need
// privileges, and are left where there are none.
void ask_for_exact_time() {
  prctl(PR_SET_TIMERSLACK, 1000UL);
  sched_param high{};
  high.sched_priority = 10;
  sched_setscheduler(0, SCHED_FIFO, &high);
  const int latency = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);  // held until we end
  const std::int32_t none = 0;
  static_cast<void>(!::write(latency, &none, sizeof none));
}

}  // namespace

std::vector<PortChange> port_changes(const Change& change, const Cluster& cluster,
                                     const Wiring& wiring) {
  std::vector<PortChange> all;
  for (const LinkId link : links_of(change, cluster)) {
    const int up = way_up(wiring, link);
    for (const int port : {up, up + 1}) {
      const auto add = [&](PortChange::What what, double value) {
        all.push_back({.what = what, .port = port, .value = value, .at = 0});
      };
      if (change.bandwidth) add(PortChange::bandwidth, change.bandwidth->bytes_per_second);
      if (change.latency) add(PortChange::latency, change.latency->count() / 2 * 1e9);
      if (change.jitter) add(PortChange::jitter, change.jitter->count() * 1e9);
      if (change.loss) add(PortChange::loss, *change.loss);
      if (change.load) add(PortChange::load, change.load->bytes_per_second);
      if (change.cut) add(PortChange::cut, 0);
      if (change.repair || (change.bandwidth && !change.cut)) add(PortChange::repair, 0);
    }
  }
  return all;
}

Switch::Switch(const Wiring& wiring, std::span<const Descriptor> devices, std::uint64_t seed)
    : ports_(wiring.ports.size()) {
  shared_size_ = sizeof(SwitchReport) + ports_ * sizeof(Counters);
  void* shared =
      mmap(nullptr, shared_size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int ends[2];
  if (shared == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error(fmt::format("lab: no switch: {}", std::strerror(errno)));
  report_ = new (shared) SwitchReport;
  counters_ = new (static_cast<std::byte*>(shared) + sizeof(SwitchReport)) Counters[ports_];
  commands_ = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]);
  owner_ = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error(fmt::format("lab: no switch: {}", std::strerror(errno)));
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != owner_) _exit(1);
  prctl(PR_SET_NAME, "lab-switch");
  setpgid(0, 0);  // what a terminal sends is for who started us
  commands_.reset();
  ask_for_exact_time();
  Loop(wiring, devices, theirs.get(), *report_, counters_, seed).run();
  _exit(0);
}

Switch::~Switch() {
  if (owner_ == getpid()) {
    // Whoever ends all children has reaped it: its number may be another process's by now.
    if (running()) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  munmap(report_, shared_size_);
}

void Switch::tell(const PortChange& change) const {
  if (send(commands_.get(), &change, sizeof change, MSG_NOSIGNAL) != sizeof change)
    throw std::runtime_error("lab: the switch has ended");
}

std::vector<Counters> Switch::counters() const {
  return {counters_, counters_ + ports_};
}

bool Switch::running() const {
  return waitpid(pid_, nullptr, WNOHANG) == 0;
}

}  // namespace riffle::lab
