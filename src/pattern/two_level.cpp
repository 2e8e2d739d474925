// Inside each rack the members scatter the vector over as many owners as the smallest rack has
// members; owners of the same shard all-reduce it across racks by halving-doubling; then owners
// send their shard to the whole rack.
// Rounds 2 inside and 2*ceil(log2 R) across; an uplink carries 2(R-1)/R of the vector each way.
// Of a long vector one segment is across while others are inside.
#include <algorithm>

#include "pattern/parts.h"

namespace riffle::pattern {
namespace {

class TwoLevel : public Pattern {
 public:
  TwoLevel(int n, const std::vector<std::vector<int>>& racks)
      : TwoLevel(n, racks,
                 halving_doubling(static_cast<int>(racks.size()), Collective::all_reduce)) {}

  void sends(int member, int round, std::vector<Message>& out) const override {
    const Place place = places_[member];
    const auto& rack = racks_[place.rack];
    const int across = cross_->members();
    if (round == 0) {
      for (int shard = 0; shard < shards_; ++shard)
        if (shard != place.index)
          out.push_back({member, rack[shard], shard * across, across, true});
    } else if (round + 1 == rounds()) {
      if (place.index >= shards_) return;
      for (const int other : rack)
        if (other != member) out.push_back({member, other, place.index * across, across, false});
    } else if (place.index < shards_) {
      std::vector<Message> inner;
      cross_->sends(place.rack, round - 1, inner);
      for (const Message& message : inner) add_cross(message, place.index, out);
    }
  }
  void receives(int member, int round, std::vector<Message>& out) const override {
    const Place place = places_[member];
    const bool owner = place.index < shards_;
    const auto& rack = racks_[place.rack];
    if (round == 0 || round + 1 == rounds()) {
      std::vector<Message> sent;
      for (const int other : rack) {
        if (other == member || (round == 0 && !owner)) continue;
        sent.clear();
        sends(other, round, sent);
        for (const Message& message : sent)
          if (message.to == member) out.push_back(message);
      }
    } else if (owner) {
      std::vector<Message> inner;
      cross_->receives(place.rack, round - 1, inner);
      for (const Message& message : inner) add_cross(message, place.index, out);
    }
  }

  [[nodiscard]] bool has_phases() const override { return true; }

 private:
  struct Place {
    int rack;
    int index;
  };

  TwoLevel(int n, const std::vector<std::vector<int>>& racks, std::unique_ptr<Pattern> cross)
      : Pattern(n, 2 + cross->rounds(), smallest(racks) * static_cast<int>(racks.size())),
        racks_(racks),
        cross_(std::move(cross)),
        shards_(smallest(racks)),
        places_(static_cast<std::size_t>(n)) {
    for (int r = 0; r < static_cast<int>(racks_.size()); ++r)
      for (int i = 0; i < static_cast<int>(racks_[r].size()); ++i) places_[racks_[r][i]] = {r, i};
  }

  static int smallest(const std::vector<std::vector<int>>& racks) {
    std::size_t size = racks.front().size();
    for (const auto& rack : racks) size = std::min(size, rack.size());
    return static_cast<int>(size);
  }

  // A cyclic run of blocks within one shard may wrap inside the shard: then it is two messages'
  // worth of blocks, sent as two messages.
  void add_cross(const Message& message, int shard, std::vector<Message>& out) const {
    const int across = cross_->members();
    const int base = shard * across;
    const int from = racks_[message.from][shard];
    const int to = racks_[message.to][shard];
    const int until_end = std::min(message.count, across - message.first);
    out.push_back({from, to, base + message.first, until_end, message.add});
    if (until_end < message.count)
      out.push_back({from, to, base, message.count - until_end, message.add});
  }

  std::vector<std::vector<int>> racks_;
  std::unique_ptr<Pattern> cross_;
  int shards_;
  std::vector<Place> places_;
};

}  // namespace

std::unique_ptr<Pattern> two_level(int n, const std::vector<std::vector<int>>& racks) {
  return std::make_unique<TwoLevel>(n, racks);
}

}  // namespace riffle::pattern
