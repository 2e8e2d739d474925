#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "riffle/cluster.h"
#include "riffle/error.h"

namespace riffle {
namespace {

constexpr int kClusterVersion = 1;
constexpr int kMost = 1'000'000;

void put_link(Json& json, const Link& link) {
  json["latency"] = link.latency.count();
  json["bandwidth"] = link.bandwidth.bytes_per_second;
}

Link get_link(const JsonReader& reader) {
  const Link link{reader.at("latency").seconds(), {reader.at("bandwidth").number()}};
  if (link.bandwidth.bytes_per_second <= 0) reader.at("bandwidth").fail("must be above zero");
  return link;
}

Domain get_domain(const JsonReader& reader, std::size_t index) {
  Domain domain;
  domain.name = reader.at("name").text();
  if (index == 0) return domain;
  // Parents come first, so the tree cannot have a cycle.
  domain.parent = static_cast<int>(reader.at("parent").integer(0, static_cast<int>(index) - 1));
  domain.uplink = get_link(reader);
  return domain;
}

WorkerSpec get_worker(const JsonReader& reader, const Cluster& cluster) {
  WorkerSpec worker;
  if (reader.has("slow")) worker.slow = reader.at("slow").number();
  if (worker.slow <= 0) reader.at("slow").fail("must be above zero");
  if (cluster.fit) return worker;
  const int last = static_cast<int>(cluster.domains.size()) - 1;
  worker.domain = static_cast<int>(reader.at("domain").integer(0, last));
  worker.link = get_link(reader);
  return worker;
}

Cluster parse_spec(const JsonReader& spec) {
  try {
    return parse_cluster(spec.text());
  } catch (const UsageError& error) {
    usage_error("{}: {}", spec.where(), error.what());
  }
}

void read_optional_fields(const JsonReader& reader, Cluster& cluster) {
  if (reader.has("algorithm"))
    cluster.algorithm =
        parse_algorithm(reader.at("algorithm").text(), reader.at("algorithm").where());
  if (reader.has("gamma")) cluster.gamma = {reader.at("gamma").number_at_least(0)};
  if (reader.has("piece"))
    cluster.piece = Bytes{reader.at("piece").integer(1, std::int64_t{1} << 40)};
  if (reader.has("jitter")) cluster.jitter = reader.at("jitter").number_at_least(0);
  if (reader.has("optimizer_step")) cluster.optimizer_step = reader.at("optimizer_step").seconds();
  if (reader.has("straggle")) {
    const JsonReader straggle = reader.at("straggle");
    cluster.straggle = {straggle.at("probability").number_at_least(0),
                        straggle.at("factor").number_at_least(1)};
    if (cluster.straggle.probability > 1) straggle.at("probability").fail("must be at most 1");
  }
}

}  // namespace

std::string to_json(const Cluster& cluster) {
  Json json{{"riffle", "cluster"}, {"version", kClusterVersion}};
  if (cluster.fit) json["fit"] = Json{{"a", cluster.fit->a.count()}, {"b", cluster.fit->b.value}};
  json["domains"] = Json::array();
  for (const Domain& domain : cluster.domains) {
    Json entry{{"name", domain.name}};
    if (domain.parent >= 0) {
      entry["parent"] = domain.parent;
      put_link(entry, domain.uplink);
    }
    json["domains"].push_back(entry);
  }
  json["workers"] = Json::array();
  for (const WorkerSpec& worker : cluster.workers) {
    Json entry = Json::object();
    if (!cluster.fit) {
      entry["domain"] = worker.domain;
      put_link(entry, worker.link);
    }
    if (worker.slow != 1) entry["slow"] = worker.slow;
    json["workers"].push_back(entry);
  }
  for (const PairLink& pair : cluster.pairs) {
    Json entry{{"from", pair.from}, {"to", pair.to}};
    put_link(entry, pair.link);
    json["pairs"].push_back(entry);
  }
  json["algorithm"] = name_of(cluster.algorithm);
  json["gamma"] = cluster.gamma.value;
  if (cluster.piece != Cluster{}.piece) json["piece"] = cluster.piece.count;
  json["jitter"] = cluster.jitter;
  json["straggle"] =
      Json{{"probability", cluster.straggle.probability}, {"factor", cluster.straggle.factor}};
  json["optimizer_step"] = cluster.optimizer_step.count();
  return json.dump(1) + "\n";
}

Cluster cluster_from_json(std::string_view text, std::string_view source) {
  const Json json = parse_json(text, source);
  const JsonReader reader(json, std::string(source));
  reader.expect_document("cluster", kClusterVersion);
  if (reader.has("spec")) return parse_spec(reader.at("spec"));
  Cluster cluster;
  if (reader.has("fit")) {
    const JsonReader fit = reader.at("fit");
    cluster.fit = LinearCost{fit.at("a").seconds(), {fit.at("b").number_at_least(0)}};
  } else {
    const JsonReader domains = reader.at("domains");
    if (domains.size() == 0 || domains.size() > kMost) domains.fail("needs 1 to 1000000 entries");
    for (std::size_t i = 0; i < domains.size(); ++i)
      cluster.domains.push_back(get_domain(domains.at(i), i));
  }
  const JsonReader workers = reader.at("workers");
  if (workers.size() == 0 || workers.size() > kMost) workers.fail("needs 1 to 1000000 entries");
  for (std::size_t i = 0; i < workers.size(); ++i)
    cluster.workers.push_back(get_worker(workers.at(i), cluster));
  if (reader.has("pairs")) {
    const JsonReader pairs = reader.at("pairs");
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const JsonReader pair = pairs.at(i);
      cluster.pairs.push_back({static_cast<Rank>(pair.at("from").integer(0, cluster.size() - 1)),
                               static_cast<Rank>(pair.at("to").integer(0, cluster.size() - 1)),
                               get_link(pair)});
    }
  }
  read_optional_fields(reader, cluster);
  return cluster;
}

}  // namespace riffle
