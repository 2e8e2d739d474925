#include "probe_page.h"

#include <fmt/format.h>

#include "model/cluster_change.h"
#include "report/table.h"

namespace riffle::cli {
namespace {

using measure::HostFacts;
using measure::Network;
using report::Table;

// Matrices of more hosts are for programs.
constexpr int kMostShown = 16;

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string domain_of(const Probed& probed, int host) {
  const auto& levels = probed.network.measured.levels;
  const Cluster& cluster = probed.network.fit.cluster;
  const Group& ranks = probed.network.measured.hosts[host];
  int domain = cluster.workers[ranks.ranks().front()].domain;
  if (ranks.size() > 1 && probed.network.speakers.size() > 1)
    domain = cluster.domains[domain].parent;
  return levels.size() > 1 ? cluster.domains[domain].name : "";
}

std::string speed_of(const measure::Device& device) {
  return device.speed > Bandwidth{} ? fmt::format(" ({})", print(device.speed)) : "";
}

Table host_table(const Probed& probed) {
  const Network& network = probed.network;
  Table table{{{"host", false},
               {"ranks", false},
               {"rack", false},
               {"interface", false},
               {"MTU"},
               {"nearest"},
               {"usual/best"},
               {"sends"},
               {"receives"}},
              {}};
  const auto rates = measure::host_rates(network.measured.rate);
  for (int host = 0; host < network.speakers.size(); ++host) {
    const HostFacts& facts = probed.facts[host];
    Seconds nearest{1e9};
    double steady = 1;
    for (int other = 0; other < network.speakers.size(); ++other)
      if (const auto& echo = network.echoes.at(host, other); echo && echo->one_way() < nearest) {
        nearest = echo->one_way();
        steady = echo->usual / echo->least;
      }
    table.rows.push_back({facts.name, model::ranges(network.measured.hosts[host]),
                          domain_of(probed, host), facts.used.name + speed_of(facts.used),
                          facts.used.mtu > 0 ? std::to_string(facts.used.mtu) : "", print(nearest),
                          fmt::format("{:.2f}", steady), print(rates[host].out),
                          print(rates[host].in)});
  }
  return table;
}

Table uplink_table(const Network& network) {
  Table table{
      {{"uplink", false}, {"hosts"}, {"adds"}, {"out"}, {"in"}, {"ends could"}, {"", false}}, {}};
  // Domains of parts come in the order of parts, those of hosts among them.
  std::size_t part = 1;
  for (const Domain& domain : network.fit.cluster.domains) {
    if (domain.parent < 0 || domain.name.starts_with("host")) continue;
    const measure::UplinkLoad& load = network.measured.uplinks[part];
    table.rows.push_back({domain.name, std::to_string(network.measured.levels[part].hosts.size()),
                          print(domain.uplink.latency), print(load.out), print(load.in),
                          print(load.ends),
                          load.is_limit() ? "shared" : "not the limit: at least this"});
    ++part;
  }
  return table;
}

Table matrix(const Probed& probed, bool rates) {
  const Network& network = probed.network;
  Table table{{{rates ? "Mbps" : "ms", false}}, {}};
  for (int host = 0; host < network.speakers.size(); ++host)
    table.columns.push_back({probed.facts[host].name});
  for (int from = 0; from < network.speakers.size(); ++from) {
    table.rows.push_back({probed.facts[from].name});
    for (int to = 0; to < network.speakers.size(); ++to) {
      const auto& latency = network.measured.latency.at(from, to);
      const auto& rate = network.measured.rate.at(from, to);
      std::string text = from == to ? "" : "?";
      if (rates && rate) text = fmt::format("{:.4g}", rate->bytes_per_second * 8e-6);
      if (!rates && latency) text = fmt::format("{:.3f}", latency->count() * 1e3);
      table.rows.back().push_back(text);
    }
  }
  return table;
}

std::string headline(const Probed& probed) {
  const Network& network = probed.network;
  std::string text =
      fmt::format("{} ranks on {} host{}, started by {}; measured in {}\n",
                  network.fit.cluster.size(), network.speakers.size(),
                  network.speakers.size() == 1 ? "" : "s", probed.launcher, print(probed.took));
  if (probed.dilate != 1 || probed.shrink != 1)
    text += fmt::format(
        "in a lab whose time is stretched {:g} times and whose messages are shrunk {:g} times; "
        "figures are those of the true cluster\n",
        probed.dilate, probed.shrink);
  text += fmt::format("cluster   {}\n", print(network.fit.cluster));
  if (network.speakers.size() > 1)
    text += fmt::format(
        "fit       latency off by {} (median), {} (worst); rate inside racks by {}, {}\n",
        percent(network.fit.latency.median), percent(network.fit.latency.worst),
        percent(network.fit.rate.median), percent(network.fit.rate.worst));
  return text;
}

Json json_of(const Link& link) {
  return {{"latency", link.latency.count()}, {"bandwidth", link.bandwidth.bytes_per_second}};
}

Json pairs_json(const Network& network) {
  Json pairs = Json::array();
  for (int a = 0; a < network.speakers.size(); ++a)
    for (int b = 0; b < network.speakers.size(); ++b) {
      const auto& echo = network.echoes.at(a, b);
      const auto& rate = network.measured.rate.at(a, b);
      if (!echo) continue;
      Json pair{{"from", a},
                {"to", b},
                {"latency", echo->one_way().count()},
                {"usual_latency", echo->usual.count() / 2}};
      pair["bandwidth"] = rate ? Json(rate->bytes_per_second) : Json(nullptr);
      pairs.push_back(pair);
    }
  return pairs;
}

}  // namespace

std::string probe_page(const Probed& probed, bool colour) {
  const Network& network = probed.network;
  std::string page = headline(probed);
  if (network.speakers.size() > 1) page += "\n" + print_table(host_table(probed), colour);
  if (network.measured.levels.size() > 1) page += "\n" + print_table(uplink_table(network), colour);
  if (network.speakers.size() > 1 && network.speakers.size() <= kMostShown) {
    page += "\nlatency one way, and the rate of each pair while all hosts are busy\n";
    page += print_table(matrix(probed, false), colour) + "\n";
    page += print_table(matrix(probed, true), colour);
  }
  page += probed.advice.empty() ? "\nnothing to complain of\n" : "\nadvice\n";
  for (const std::string& line : probed.advice) page += fmt::format("- {}\n", line);
  return page;
}

Json probe_json(const Probed& probed) {
  const Network& network = probed.network;
  Json json{{"riffle", "probe"},
            {"version", 1},
            {"launcher", probed.launcher},
            {"seconds", probed.took.count()},
            {"dilate", probed.dilate},
            {"shrink", probed.shrink},
            {"spec", print(network.fit.cluster)},
            {"cluster", Json::parse(to_json(network.fit.cluster))},
            {"fit",
             {{"latency_median", network.fit.latency.median},
              {"latency_worst", network.fit.latency.worst},
              {"bandwidth_median", network.fit.rate.median},
              {"bandwidth_worst", network.fit.rate.worst}}}};
  const auto rates = measure::host_rates(network.measured.rate);
  json["hosts"] = Json::array();
  for (int host = 0; host < network.speakers.size(); ++host) {
    Json entry = Json::parse(to_json(probed.facts[host]));
    entry["ranks"] = network.measured.hosts[host].ranks();
    entry["inside"] = json_of(network.measured.inside[host]);
    entry["sends"] = rates[host].out.bytes_per_second;
    entry["receives"] = rates[host].in.bytes_per_second;
    json["hosts"].push_back(entry);
  }
  json["uplinks"] = Json::array();
  for (std::size_t part = 1; part < network.measured.levels.size(); ++part) {
    const measure::UplinkLoad& load = network.measured.uplinks[part];
    json["uplinks"].push_back(
        {{"hosts", network.measured.levels[part].hosts},
         {"found_by", network.measured.levels[part].by_rate ? "rate" : "latency"},
         {"flows", load.flows},
         {"out", load.out.bytes_per_second},
         {"in", load.in.bytes_per_second},
         {"ends", load.ends.bytes_per_second},
         {"is_limit", load.is_limit()}});
  }
  json["pairs"] = pairs_json(network);
  json["advice"] = probed.advice;
  return json;
}

}  // namespace riffle::cli
