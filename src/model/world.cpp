#include "riffle/world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/json.h"
#include "model/group_json.h"
#include "riffle/error.h"

namespace riffle {

Group::Group(std::vector<Rank> ranks) {
  if (!std::ranges::is_sorted(ranks)) std::ranges::sort(ranks);
  const auto twice = std::ranges::adjacent_find(ranks);
  if (twice != ranks.end()) usage_error("group: rank {} occurs twice", *twice);
  ranks_ = std::make_shared<const std::vector<Rank>>(std::move(ranks));
}

int Group::index_of(Rank rank) const {
  const auto found = std::ranges::lower_bound(*ranks_, rank);
  return found != ranks_->end() && *found == rank ? static_cast<int>(found - ranks_->begin()) : -1;
}

Membership Membership::all(int workers) {
  std::vector<Rank> ranks(static_cast<std::size_t>(workers));
  std::iota(ranks.begin(), ranks.end(), 0);
  return {0, Group(std::move(ranks))};
}

World::World(Cluster all_of_it)
    : membership(Membership::all(all_of_it.size())), cluster(std::move(all_of_it)) {}

World::World(Cluster within, Membership live)
    : membership(std::move(live)), cluster(std::move(within)) {
  if (membership.ranks.empty()) usage_error("world: no rank is alive");
  if (membership.ranks.ranks().front() < 0 || membership.ranks.ranks().back() >= cluster.size())
    usage_error("world: ranks {} to {} are not in a cluster of {} workers",
                membership.ranks.ranks().front(), membership.ranks.ranks().back(), cluster.size());
}

Partition World::racks() const {
  if (cluster.domains.size() <= 1) return {ranks()};
  std::map<int, std::vector<Rank>> by_domain;
  for (const Rank rank : ranks()) by_domain[cluster.workers[rank].domain].push_back(rank);
  Partition racks;
  for (auto& [domain, members] : by_domain) racks.emplace_back(std::move(members));
  return racks;
}

std::string print(const Group& group) {
  return fmt::format("{{{}}}", fmt::join(group, " "));
}

std::string print(const Partition& partition) {
  std::string text;
  for (const Group& group : partition)
    text += fmt::format("{}{}", text.empty() ? "" : " ", print(group));
  return text;
}

void validate(const Partition& partition, const Group& world) {
  std::vector<Rank> seen;
  for (const Group& group : partition) {
    if (group.empty()) usage_error("partition: a group is empty");
    seen.insert(seen.end(), group.begin(), group.end());
  }
  std::ranges::sort(seen);
  const auto twice = std::ranges::adjacent_find(seen);
  if (twice != seen.end()) usage_error("partition: rank {} is in two groups", *twice);
  if (seen == world.ranks()) return;
  for (const Rank rank : world)
    if (!std::ranges::binary_search(seen, rank))
      usage_error("partition: rank {} is in no group", rank);
  for (const Rank rank : seen)
    if (!world.contains(rank)) usage_error("partition: rank {} is not in the world", rank);
}

std::string to_json(const World& world) {
  Json json{{"riffle", "world"},
            {"version", 1},
            {"epoch", world.membership.epoch},
            {"ranks", world.ranks().ranks()}};
  json["cluster"] = Json::parse(to_json(world.cluster));
  return json.dump(1) + "\n";
}

World world_from_json(std::string_view text, std::string_view source) {
  const Json json = parse_json(text, source);
  const JsonReader reader(json, std::string(source));
  reader.expect_document("world", 1);
  const std::string where = reader.at("cluster").where();  // before the field is used: it may miss
  Cluster cluster = cluster_from_json(json["cluster"].dump(), where);
  Membership membership;
  membership.epoch = static_cast<std::uint64_t>(reader.at("epoch").integer(0, 1LL << 53));
  membership.ranks = model::read_group(reader.at("ranks"), cluster.size() - 1);
  if (membership.ranks.empty()) reader.at("ranks").fail("no rank is alive");
  return {std::move(cluster), std::move(membership)};
}

Group model::read_group(const JsonReader& list, Rank last) {
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < list.size(); ++i)
    ranks.push_back(static_cast<Rank>(list.at(i).integer(0, last)));
  try {
    return Group(std::move(ranks));
  } catch (const UsageError& error) {
    usage_error("{}: {}", list.where(), error.what());
  }
}

}  // namespace riffle
