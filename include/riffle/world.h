// Who takes part: the live ranks with their epoch, the groups made of them, and the agreed
// topology.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "riffle/cluster.h"

namespace riffle {

using Step = std::int64_t;

// Ranks that exchange with each other, ascending and without repeats. A shared handle: copies are
// cheap, so thousands of exchanges may name one group. Compared by value.
class Group {
 public:
  Group() : Group(std::vector<Rank>{}) {}
  Group(std::initializer_list<Rank> ranks) : Group(std::vector<Rank>(ranks)) {}
  explicit Group(std::vector<Rank> ranks);

  [[nodiscard]] const std::vector<Rank>& ranks() const { return *ranks_; }
  [[nodiscard]] int size() const { return static_cast<int>(ranks_->size()); }
  [[nodiscard]] bool empty() const { return ranks_->empty(); }
  [[nodiscard]] bool contains(Rank rank) const { return index_of(rank) >= 0; }
  // Position of a rank in the group; -1 when it is no member. Logarithmic.
  [[nodiscard]] int index_of(Rank rank) const;
  // Equal for copies of one handle; lets readers cache what they computed for a group.
  [[nodiscard]] const void* identity() const { return ranks_.get(); }

  [[nodiscard]] auto begin() const { return ranks_->begin(); }
  [[nodiscard]] auto end() const { return ranks_->end(); }
  bool operator==(const Group& other) const {
    return ranks_ == other.ranks_ || *ranks_ == *other.ranks_;
  }

 private:
  std::shared_ptr<const std::vector<Rank>> ranks_;
};

// Disjoint groups that together cover a world.
using Partition = std::vector<Group>;

// The live ranks. A rank keeps its number when others die, so there may be gaps.
struct Membership {
  std::uint64_t epoch = 0;
  Group ranks;
  bool operator==(const Membership&) const = default;
  static Membership all(int workers);
};

// What every rank agrees on, and all that a strategy may look at.
struct World {
  Membership membership;
  Cluster cluster;

  bool operator==(const World&) const = default;
  explicit World(Cluster all_of_it);
  World(Cluster within, Membership live);

  [[nodiscard]] int size() const { return membership.ranks.size(); }
  [[nodiscard]] const Group& ranks() const { return membership.ranks; }
  // The live ranks by the innermost domain (rack) they are in; racks without a live rank are left
  // out. One group of all for a flat cluster or a fit.
  [[nodiscard]] Partition racks() const;
};

// "{0 1 2} {3 4 5}"
std::string print(const Group& group);
std::string print(const Partition& partition);
std::string to_json(const World& world);
World world_from_json(std::string_view text, std::string_view source);
// UsageError unless the groups are disjoint, non-empty and cover exactly `world`.
void validate(const Partition& partition, const Group& world);

}  // namespace riffle
