#include "measure/cluster_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace riffle::measure {
namespace {

// Links that differ by so little are the same.
constexpr double kSameLatency = 0.12;
constexpr double kLatencyNoise = 30e-6;
constexpr double kSameRate = 0.1;
// Ways of a link that differ by so much count as the slower one.
constexpr double kAsymmetric = 1.2;
// An uplink that carried so much of what the hosts at both ends can was not full.
constexpr double kUnhindered = 0.85;

// The mean of the two in the middle, so that it leans to no side.
double middle(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

// Four digits, since what was measured has no more, in units that a person would write.
Link rounded(double latency, double rate) {
  return {parse_seconds(fmt::format("{:.4g}us", latency * 1e6), "latency"),
          parse_bandwidth(fmt::format("{:.4g}Mbps", std::max(rate * 8e-6, 1e-6)), "bandwidth")};
}

// Values that are about the same become their median; the others keep theirs.
void unify(std::vector<double*> values, double share, double noise) {
  if (values.empty()) return;
  std::vector<double> all;
  for (const double* each : values) all.push_back(*each);
  const double usual = middle(all);
  const auto is_usual = [&](const double* each) {
    return std::abs(*each - usual) <= share * usual + noise;
  };
  std::vector<double> same;
  for (const double* each : values)
    if (is_usual(each)) same.push_back(*each);
  if (same.empty()) return;
  const double value = middle(same);
  std::erase_if(values, [&](const double* each) { return !is_usual(each); });
  for (double* each : values) *each = value;
}

// Values of which each pair's mean is known. Of two only the mean is known, and both get it.
std::vector<double> ends_of(const PairTable<double>& means) {
  constexpr int kPasses = 20;
  const int n = means.size();
  std::vector<double> nearest;
  for (int a = 0; a < n; ++a) {
    double least = 1e9;
    for (int b = 0; b < n; ++b)
      if (a != b && means.at(a, b)) least = std::min(least, *means.at(a, b));
    nearest.push_back(least < 1e9 ? least : 0);
  }
  if (n < 3) return nearest;
  std::vector<double> values;
  const double usual = median(nearest);
  for (const double each : nearest) values.push_back(std::max(2 * each - usual, 0.0));
  for (int pass = 0; pass < kPasses; ++pass)
    for (int a = 0; a < n; ++a) {
      std::vector<double> said;
      for (int b = 0; b < n; ++b)
        if (a != b && means.at(a, b)) said.push_back(2 * *means.at(a, b) - values[b]);
      if (!said.empty()) values[a] = std::max(middle(said), 0.0);
    }
  return values;
}

double both_ways(Bandwidth out, Bandwidth in) {
  const auto [low, high] = std::minmax(out.bytes_per_second, in.bytes_per_second);
  return high > kAsymmetric * low ? low : (low + high) / 2;
}

class Fitter {
 public:
  explicit Fitter(const Measured& measured)
      : measured_(measured), hosts_(measured.hosts.size()), uplinks_(measured.levels.size()) {}

  ClusterFit fit() {
    fit_rates();
    fit_host_latencies();
    for (int part = static_cast<int>(uplinks_.size()) - 1; part >= 0; --part)
      fit_uplink_latencies(part);
    unify_by_depth();
    ClusterFit result;
    result.cluster = build();
    result.latency = latency_residual(result.cluster);
    result.rate = rate_residual();
    return result;
  }

 private:
  struct Fitted {
    double latency = 0;
    double rate = 0;
    [[nodiscard]] Link link() const { return rounded(latency, rate); }
  };
  Fitted& host(int index) { return hosts_[index]; }
  Fitted& uplink(int part) { return uplinks_[part]; }
  [[nodiscard]] const Part& part(int index) const { return measured_.levels[index]; }

  void fit_rates() {
    const std::vector<HostRate> rates = host_rates(measured_.rate);
    std::vector<double*> all;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      hosts_[i].rate = both_ways(rates[i].out, rates[i].in);
      all.push_back(&hosts_[i].rate);
    }
    unify(all, kSameRate, 0);
    for (std::size_t i = 1; i < uplinks_.size(); ++i)
      uplinks_[i].rate = measured_.uplinks[i].rate().bytes_per_second;
  }

  void fit_host_latencies() {
    std::vector<double*> known;
    std::vector<int> alone;
    for (std::size_t p = 0; p < uplinks_.size(); ++p) {
      if (!parts_of(measured_.levels, static_cast<int>(p)).empty()) continue;
      const std::vector<int>& members = part(static_cast<int>(p)).hosts;
      const int n = static_cast<int>(members.size());
      PairTable<double> means(n);
      for (int a = 0; a < n; ++a)
        for (int b = 0; b < n; ++b)
          if (const auto& latency = measured_.latency.at(members[a], members[b]); a != b && latency)
            means.at(a, b) = latency->count();
      const std::vector<double> own = ends_of(means);
      for (int a = 0; a < n; ++a) {
        host(members[a]).latency = own[a];
        if (n > 1)
          known.push_back(&host(members[a]).latency);
        else
          alone.push_back(members[a]);
      }
    }
    unify(known, kSameLatency, kLatencyNoise);
    std::vector<double> values;
    for (const double* each : known) values.push_back(*each);
    for (const int each : alone) host(each).latency = values.empty() ? 0 : middle(values);
  }

  // What a host's links add to a path that leaves `above`'s part it is in.
  double below(int index, int above) {
    double sum = host(index).latency;
    for (int p = innermost(measured_.levels, index); part(p).parent != above; p = part(p).parent)
      sum += uplink(p).latency;
    return sum;
  }

  void fit_uplink_latencies(int above) {
    const std::vector<int> parts = parts_of(measured_.levels, above);
    const int n = static_cast<int>(parts.size());
    if (n == 0) return;
    PairTable<double> means(n);
    for (int a = 0; a < n; ++a)
      for (int b = 0; b < a; ++b) {
        std::vector<double> said;
        for (const int i : part(parts[a]).hosts)
          for (const int j : part(parts[b]).hosts)
            if (const auto& latency = measured_.latency.at(i, j))
              said.push_back(latency->count() - (below(i, above) + below(j, above)) / 2);
        if (!said.empty()) means.set_both(a, b, std::max(middle(said), 0.0));
      }
    const std::vector<double> own = ends_of(means);
    for (int a = 0; a < n; ++a) uplink(parts[a]).latency = own[a];
  }

  [[nodiscard]] int depth(int index) const {
    int levels = 0;
    for (; index > 0; index = part(index).parent) ++levels;
    return levels;
  }

  void unify_by_depth() {
    for (int level = 1; level < static_cast<int>(uplinks_.size()); ++level) {
      std::vector<double*> latencies;
      std::vector<double*> rates;
      for (int p = 1; p < static_cast<int>(uplinks_.size()); ++p) {
        if (depth(p) != level) continue;
        latencies.push_back(&uplink(p).latency);
        rates.push_back(&uplink(p).rate);
      }
      unify(latencies, kSameLatency, kLatencyNoise);
      unify(rates, kSameRate, 0);
    }
  }

  // Innermost parts are racks, those around them sites.
  [[nodiscard]] std::string name_of(int index, const Cluster& cluster,
                                    const std::vector<int>& domains) const {
    const std::vector<int> siblings = parts_of(measured_.levels, part(index).parent);
    const auto number = std::ranges::find(siblings, index) - siblings.begin();
    const bool inner = parts_of(measured_.levels, index).empty();
    const std::string prefix =
        part(index).parent == 0 ? "" : cluster.domains[domains[part(index).parent]].name + "/";
    return fmt::format("{}{}{}", prefix, inner ? "rack" : "site", number);
  }

  Cluster build() {
    Cluster cluster;
    cluster.domains.push_back({"root", -1, {}});
    int ranks = 0;
    for (const Group& each : measured_.hosts) ranks += each.size();
    cluster.workers.resize(static_cast<std::size_t>(ranks));
    std::vector<int> domains(uplinks_.size(), 0);
    for (int p = 0; p < static_cast<int>(uplinks_.size()); ++p) {
      if (p > 0) {
        cluster.domains.push_back(
            {name_of(p, cluster, domains), domains[part(p).parent], uplink(p).link()});
        domains[p] = static_cast<int>(cluster.domains.size()) - 1;
      }
      if (!parts_of(measured_.levels, p).empty()) continue;
      for (const int index : part(p).hosts) add_host(cluster, index, domains[p]);
    }
    return cluster;
  }

  void add_host(Cluster& cluster, int index, int domain) {
    const Group& ranks = measured_.hosts[index];
    if (ranks.size() == 1 && measured_.hosts.size() > 1) {
      cluster.workers[static_cast<std::size_t>(ranks.ranks()[0])] = {.domain = domain,
                                                                     .link = host(index).link()};
      return;
    }
    Link inside = measured_.inside[index];
    if (measured_.hosts.size() > 1) {
      Fitted uplink = host(index);
      // Busy processors make shared memory look far; what the network takes in all is known.
      inside.latency = std::min(inside.latency, Seconds(uplink.latency / 2));
      uplink.latency = std::max(uplink.latency - inside.latency.count(), 0.0);
      cluster.domains.push_back({fmt::format("host{}", index), domain, uplink.link()});
      domain = static_cast<int>(cluster.domains.size()) - 1;
    }
    const Fitted own{inside.latency.count(), inside.bandwidth.bytes_per_second};
    for (const Rank rank : ranks) cluster.workers[rank] = {.domain = domain, .link = own.link()};
  }

  static Residual residual(const std::vector<double>& shares) {
    if (shares.empty()) return {};
    return {middle(shares), std::ranges::max(shares)};
  }

  [[nodiscard]] Residual latency_residual(const Cluster& cluster) const {
    std::vector<double> shares;
    const int n = measured_.latency.size();
    for (int a = 0; a < n; ++a)
      for (int b = a + 1; b < n; ++b)
        if (const auto& latency = measured_.latency.at(a, b); latency && latency->count() > 0)
          shares.push_back(std::abs(
              cluster.latency(measured_.hosts[a].ranks()[0], measured_.hosts[b].ranks()[0]) /
                  *latency -
              1));
    return residual(shares);
  }

  [[nodiscard]] Residual rate_residual() {
    std::vector<double> shares;
    const int n = measured_.rate.size();
    for (int a = 0; a < n; ++a)
      for (int b = 0; b < n; ++b)
        if (const auto& rate = measured_.rate.at(a, b);
            rate && rate->bytes_per_second > 0 &&
            innermost(measured_.levels, a) == innermost(measured_.levels, b))
          shares.push_back(
              std::abs(std::min(host(a).rate, host(b).rate) / rate->bytes_per_second - 1));
    return residual(shares);
  }

  const Measured& measured_;
  std::vector<Fitted> hosts_;
  std::vector<Fitted> uplinks_;  // by part; the first means nothing
};

}  // namespace

Bandwidth UplinkLoad::rate() const {
  return {both_ways(out, in)};
}

bool UplinkLoad::is_limit() const {
  return both_ways(out, in) < kUnhindered * ends.bytes_per_second;
}

ClusterFit fit_cluster(const Measured& measured) {
  return Fitter(measured).fit();
}

}  // namespace riffle::measure
