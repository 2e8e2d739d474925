// Clusters: the inline spelling and JSON. What was spelled inline prints so that it parses back.
#include "property.h"
#include "riffle/cluster.h"

using namespace riffle;  // NOLINT(google-build-using-namespace): a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  if (const auto cluster = fuzz::parsed([&] { return parse_cluster(text); })) {
    const std::string spelled = print(*cluster);
    fuzz::require(parse_cluster(spelled) == *cluster, "a spec parses back", spelled);
    const std::string json = to_json(*cluster);
    fuzz::require(cluster_from_json(json, "again") == *cluster, "a spec reads back", json);
  }
  if (const auto cluster = fuzz::parsed([&] { return cluster_from_json(text, "c.json"); })) {
    fuzz::require(!print(*cluster).empty(), "a cluster prints");
    const std::string json = to_json(*cluster);
    fuzz::require(cluster_from_json(json, "again") == *cluster, "a cluster reads back", json);
    fuzz::require(cluster->latency(0, cluster->size() - 1) >= Seconds{}, "a path has a latency");
    fuzz::require(cluster->ancestors(0).size() <= cluster->domains.size(), "a path has an end");
  }
  return 0;
}
