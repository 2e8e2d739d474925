#include "measure/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/median.h"

namespace riffle::measure {
namespace {

// A host's own link counts as slow when it is so much worse than is usual.
constexpr double kSlow = 1.5;
constexpr double kUnequalWays = 1.25;
// The usual round trip is so much longer than the best.
constexpr double kUnsteady = 1.3;
constexpr Seconds kAtLeast = microseconds(200);
// A NIC that carries so little of its speed, or is so much slower than another of the host.
constexpr double kPartOfSpeed = 0.5;
// Of a TCP buffer about half is for data.
constexpr double kBufferShare = 0.5;
constexpr double kUnexplained = 0.15;

class Doctor {
 public:
  Doctor(const Network& network, const std::vector<HostFacts>& facts)
      : network_(network), facts_(facts), rates_(host_rates(network.measured.rate)) {}

  std::vector<std::string> diagnose(const PairTable<bool>& large_packets) {
    if (size() > 1) {
      find_lost_packets(large_packets);
      find_slow_hosts();
      find_asymmetry();
      find_unsteady_hosts();
      find_interfaces();
      find_settings();
      find_small_buffers();
      find_unexplained();
    }
    return std::move(lines_);
  }

 private:
  [[nodiscard]] int size() const { return network_.speakers.size(); }
  [[nodiscard]] const std::string& name(int host) const { return facts_[host].name; }
  template <typename... Args>
  void say(fmt::format_string<Args...> format, Args&&... arguments) {
    lines_.push_back(fmt::format(format, std::forward<Args>(arguments)...));
  }

  void find_lost_packets(const PairTable<bool>& large_packets) {
    std::vector<std::string> pairs;
    for (int a = 0; a < size(); ++a)
      for (int b = 0; b < size(); ++b)
        if (const auto& passed = large_packets.at(a, b); passed && !*passed)
          pairs.push_back(fmt::format("{} to {} ({} bytes)", name(a), name(b), facts_[a].used.mtu));
    if (!pairs.empty())
      say("packets of the interface's MTU get lost, small ones do not: {}; something on the way "
          "takes less: lower the MTU of the interface, or raise it there",
          fmt::join(pairs, ", "));
  }

  // The link between a host and its switch.
  [[nodiscard]] Link own_link(int host) const {
    const Cluster& cluster = network_.fit.cluster;
    const Group& ranks = network_.measured.hosts[host];
    const WorkerSpec& worker = cluster.workers[ranks.ranks().front()];
    if (ranks.size() == 1) return worker.link;
    Link link = cluster.domains[worker.domain].uplink;
    link.latency += worker.link.latency;
    return link;
  }

  void find_slow_hosts() {
    std::vector<Seconds> latencies;
    std::vector<Bandwidth> rates;
    for (int host = 0; host < size(); ++host) {
      latencies.push_back(own_link(host).latency);
      rates.push_back(own_link(host).bandwidth);
    }
    const Seconds latency = median(latencies);
    const Bandwidth rate = median(rates);
    for (int host = 0; host < size() && size() > 2; ++host) {
      const Link own = own_link(host);
      if (rate.bytes_per_second > kSlow * own.bandwidth.bytes_per_second)
        say("{} is slow: it carries {}, others {}", name(host), print(own.bandwidth), print(rate));
      if (own.latency > kSlow * latency && own.latency - latency > kAtLeast)
        say("{} is far: its own link takes {}, others' {}", name(host), print(own.latency),
            print(latency));
    }
  }

  void find_asymmetry() {
    for (int host = 0; host < size(); ++host) {
      const auto [out, in] = rates_[host];
      const auto [low, high] = std::minmax(out.bytes_per_second, in.bytes_per_second);
      if (high > kUnequalWays * low)
        say("{} sends at {} and receives at {}: look at its cable, duplex setting and what else "
            "runs there",
            name(host), print(out), print(in));
    }
    const auto& levels = network_.measured.levels;
    for (std::size_t part = 1; part < levels.size(); ++part) {
      const UplinkLoad& load = network_.measured.uplinks[part];
      const auto [low, high] = std::minmax(load.out.bytes_per_second, load.in.bytes_per_second);
      if (high > kUnequalWays * low)
        say("the uplink of {} carries {} out and {} in", name(levels[part].hosts.front()),
            print(load.out), print(load.in));
    }
  }

  void find_unsteady_hosts() {
    for (int host = 0; host < size(); ++host) {
      std::vector<double> shares;
      std::vector<Seconds> more;
      for (int other = 0; other < size(); ++other)
        if (const auto& echo = network_.echoes.at(host, other)) {
          shares.push_back(echo->usual / echo->least);
          more.push_back(echo->usual - echo->least);
        }
      if (median(shares) > kUnsteady && median(more) > kAtLeast)
        say("{} answers unsteadily: a round trip usually takes {:.1f} times its best; its "
            "processors may be busy, or its link shared",
            name(host), median(shares));
    }
  }

  void find_interfaces() {
    for (int host = 0; host < size(); ++host) {
      const HostFacts& facts = facts_[host];
      const auto fastest = std::ranges::max_element(facts.others, {}, &Device::speed);
      const double speed = facts.used.speed.bytes_per_second;
      if (fastest != facts.others.end() && speed > 0 &&
          fastest->speed.bytes_per_second * kPartOfSpeed >= speed)
        say("{} uses {} ({}) and has {} ({}): RIFFLE_INTERFACE={} would use it", facts.name,
            facts.used.name, print(facts.used.speed), fastest->name, print(fastest->speed),
            fastest->name);
      const Bandwidth carried = rates_[host].best();
      if (speed > 0 && carried.bytes_per_second < kPartOfSpeed * speed)
        say("{}: {} is a NIC of {} and carries {}", facts.name, facts.used.name,
            print(facts.used.speed), print(carried));
    }
  }

  // What most hosts have is usual.
  template <typename Value>
  void find_odd(std::string_view what, const Value& value_of) {
    std::map<std::string, std::vector<std::string>> hosts;
    for (const HostFacts& facts : facts_)
      hosts[fmt::format("{}", value_of(facts))].push_back(facts.name);
    if (hosts.size() < 2) return;
    std::vector<std::string> parts;
    for (const auto& [value, names] : hosts)
      parts.push_back(names.size() > 4 ? fmt::format("{} on {} hosts", value, names.size())
                                       : fmt::format("{} on {}", value, fmt::join(names, ", ")));
    say("{} differs: {}", what, fmt::join(parts, "; "));
  }

  void find_settings() {
    find_odd("the MTU", [](const HostFacts& facts) { return facts.used.mtu; });
    find_odd("TCP's congestion control",
             [](const HostFacts& facts) { return facts.congestion_control; });
  }

  // Bytes that fill the longest and widest path, there and back.
  [[nodiscard]] double product() const {
    double most = 0;
    for (int a = 0; a < size(); ++a)
      for (int b = 0; b < size(); ++b)
        if (const auto& echo = network_.echoes.at(a, b))
          most = std::max(most, echo->least.count() *
                                    std::min(rates_[a].best(), rates_[b].best()).bytes_per_second);
    return most;
  }

  void find_small_buffers() {
    const double needed = product() / kBufferShare;
    for (const bool receives : {true, false}) {
      std::vector<std::string> names;
      Bytes least{std::int64_t{1} << 60};
      for (const HostFacts& facts : facts_) {
        const Bytes has = receives ? facts.receive_buffer : facts.send_buffer;
        if (has.count == 0 || static_cast<double>(has.count) >= needed) continue;
        names.push_back(facts.name);
        least = std::min(least, has);
      }
      if (names.empty()) continue;
      // A power of two with room for a queue.
      std::int64_t better = 1 << 20;
      while (static_cast<double>(better) < 2 * needed) better *= 2;
      const std::string_view setting = receives ? "tcp_rmem" : "tcp_wmem";
      say("{} of {} host{} ends at {}, and the longest path holds {}: sysctl -w "
          "net.ipv4.{}=\"4096 131072 {}\" there",
          setting, names.size(), names.size() == 1 ? "" : "s", print(least),
          print(Bytes{static_cast<std::int64_t>(product())}), setting, better);
    }
  }

  void find_unexplained() {
    const Cluster& cluster = network_.fit.cluster;
    int count = 0;
    std::string worst;
    double share = kUnexplained;
    for (int a = 0; a < size(); ++a)
      for (int b = a + 1; b < size(); ++b) {
        const auto& latency = network_.measured.latency.at(a, b);
        if (!latency) continue;
        const Seconds told =
            cluster.latency(network_.speakers.ranks()[a], network_.speakers.ranks()[b]);
        const double off = std::abs(told / *latency - 1);
        if (off <= kUnexplained || std::chrono::abs(told - *latency) < kAtLeast) continue;
        ++count;
        if (off <= share) continue;
        share = off;
        worst = fmt::format("{} to {} takes {}, the cluster says {}", name(a), name(b),
                            print(*latency), print(told));
      }
    if (count > 0)
      say("{} pair{} of hosts the cluster does not explain: {}", count, count == 1 ? "" : "s",
          worst);
  }

  const Network& network_;
  const std::vector<HostFacts>& facts_;
  std::vector<HostRate> rates_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> diagnose(const Network& network, const std::vector<HostFacts>& facts,
                                  const PairTable<bool>& large_packets) {
  return Doctor(network, facts).diagnose(large_packets);
}

}  // namespace riffle::measure
