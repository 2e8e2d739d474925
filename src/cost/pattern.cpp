#include "cost/pattern.h"

#include <algorithm>
#include <bit>
#include <map>

#include "riffle/error.h"

namespace riffle {
namespace {

int wrap(int index, int n) {
  const int rest = index % n;
  return rest < 0 ? rest + n : rest;
}

// A collective that is a reduce_scatter, an all_gather, or both in this order.
struct Halves {
  bool scatter;
  bool gather;
  explicit Halves(Collective collective)
      : scatter(collective != Collective::all_gather),
        gather(collective != Collective::reduce_scatter) {}
  [[nodiscard]] int count() const { return (scatter ? 1 : 0) + (gather ? 1 : 0); }
};

// Every member passes a block to its right neighbour in each round.
// Patarasuk and Yuan, 2009. Rounds 2(n-1), bytes 2(n-1)/n.
class Ring : public Pattern {
 public:
  Ring(int n, Collective collective)
      : Pattern(n, Halves(collective).count() * (n - 1), n), halves_(collective) {}

  void sends(int member, int round, std::vector<Message>& out) const override {
    const int n = members();
    const bool add = halves_.scatter && round < n - 1;
    // In the scatter half a block travels to its owner, in the gather half away from it.
    const int block =
        add ? member - 1 - round : member - (halves_.scatter ? round - (n - 1) : round);
    out.push_back({member, wrap(member + 1, n), wrap(block, n), 1, add});
  }
  void receives(int member, int round, std::vector<Message>& out) const override {
    sends(wrap(member - 1, members()), round, out);
  }
  [[nodiscard]] std::vector<RoundClass> round_classes() const override { return {{0, rounds()}}; }

 private:
  Halves halves_;
};

// Halving-doubling for any n: the circulant schedule. In the scatter half member i sends the blocks
// of the members from i+s on to i+s, where s halves each time; the gather half runs it backward.
// For a power of two it has the rounds and volume of recursive halving and doubling.
// Traff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", arXiv:2410.14234.
// Rounds 2*ceil(log2 n), bytes 2(n-1)/n.
class HalvingDoubling : public Pattern {
 public:
  HalvingDoubling(int n, Collective collective)
      : Pattern(n, Halves(collective).count() * (static_cast<int>(halving_skips(n).size()) - 1), n),
        halves_(collective),
        skips_(halving_skips(n)) {}

  void sends(int member, int round, std::vector<Message>& out) const override {
    const Round r = at(round);
    const int n = members();
    if (r.add)
      out.push_back({member, wrap(member + r.skip, n), wrap(member + r.skip, n), r.count, true});
    else
      out.push_back({member, wrap(member - r.skip, n), member, r.count, false});
  }
  void receives(int member, int round, std::vector<Message>& out) const override {
    const Round r = at(round);
    sends(wrap(r.add ? member - r.skip : member + r.skip, members()), round, out);
  }

 private:
  struct Round {
    int skip;
    int count;
    bool add;
  };
  [[nodiscard]] Round at(int round) const {
    const int half = static_cast<int>(skips_.size()) - 1;
    const bool add = halves_.scatter && round < half;
    const int k = add ? round : half - 1 - (halves_.scatter ? round - half : round);
    return {skips_[k + 1], skips_[k] - skips_[k + 1], add};
  }

  Halves halves_;
  std::vector<int> skips_;
};

// Pairs at distance 1, 2, 4, ... exchange whole vectors. Members beyond the largest power of two
// first give theirs to a partner and get the result back at the end.
// Rounds log2 n (two more unless n is a power of two), bytes 1 per round.
class RecursiveDoubling : public Pattern {
 public:
  explicit RecursiveDoubling(int n)
      : Pattern(n, std::countr_zero(std::bit_floor(static_cast<unsigned>(n))) + 2 * extra(n), 1),
        power_(static_cast<int>(std::bit_floor(static_cast<unsigned>(n)))),
        folded_(extra(n) != 0) {}

  void sends(int member, int round, std::vector<Message>& out) const override {
    if (const int to = peer(member, round, true); to >= 0)
      out.push_back({member, to, 0, 1, !folded_ || round + 1 < rounds()});
  }
  void receives(int member, int round, std::vector<Message>& out) const override {
    if (const int from = peer(member, round, false); from >= 0) sends(from, round, out);
  }

 private:
  static int extra(int n) { return std::has_single_bit(static_cast<unsigned>(n)) ? 0 : 1; }

  // Whom the member sends to (or hears from) in a round; -1 for nobody.
  [[nodiscard]] int peer(int member, int round, bool sending) const {
    if (folded_ && (round == 0 || round + 1 == rounds())) {
      const bool outside_sends = round == 0;
      const bool outside = member >= power_;
      if (outside) return outside_sends == sending ? member - power_ : -1;
      const int partner = member + power_;
      return partner < members() && outside_sends != sending ? partner : -1;
    }
    return member < power_ ? member ^ (1 << (round - (folded_ ? 1 : 0))) : -1;
  }

  int power_;
  bool folded_;
};

// Everybody sends each block straight to its owner, then owners send results to everybody.
// Rounds 2, bytes 2(n-1)/n in 2(n-1) messages.
class Direct : public Pattern {
 public:
  Direct(int n, Collective collective)
      : Pattern(n, n > 1 ? Halves(collective).count() : 0, n), halves_(collective) {}

  void sends(int member, int round, std::vector<Message>& out) const override {
    const bool add = halves_.scatter && round == 0;
    for (int other = 0; other < members(); ++other)
      if (other != member) out.push_back({member, other, add ? other : member, 1, add});
  }
  void receives(int member, int round, std::vector<Message>& out) const override {
    const bool add = halves_.scatter && round == 0;
    for (int other = 0; other < members(); ++other)
      if (other != member) out.push_back({other, member, add ? member : other, 1, add});
  }

 private:
  Halves halves_;
};

// Send the whole vector some places on, receive from as many places back (one-peer gossip).
class Shift : public Pattern {
 public:
  Shift(int n, int places)
      : Pattern(n, wrap(places, n) == 0 ? 0 : 1, 1), places_(wrap(places, n)) {}

  void sends(int member, int /*round*/, std::vector<Message>& out) const override {
    out.push_back({member, wrap(member + places_, members()), 0, 1, true});
  }
  void receives(int member, int round, std::vector<Message>& out) const override {
    sends(wrap(member - places_, members()), round, out);
  }

 private:
  int places_;
};

// Inside each rack the members scatter the vector over as many owners as the smallest rack has
// members; owners of the same shard all-reduce it across racks by halving-doubling; then owners
// send their shard to the whole rack.
// Rounds 2 inside and 2*ceil(log2 R) across; an uplink carries 2(R-1)/R of the vector each way.
class TwoLevel : public Pattern {
 public:
  TwoLevel(int n, const std::vector<std::vector<int>>& racks)
      : TwoLevel(n, racks,
                 HalvingDoubling(static_cast<int>(racks.size()), Collective::all_reduce)) {}

  void sends(int member, int round, std::vector<Message>& out) const override {
    const Place place = places_[member];
    const auto& rack = racks_[place.rack];
    const int across = cross_.members();
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
      cross_.sends(place.rack, round - 1, inner);
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
      cross_.receives(place.rack, round - 1, inner);
      for (const Message& message : inner) add_cross(message, place.index, out);
    }
  }

 private:
  struct Place {
    int rack;
    int index;
  };

  TwoLevel(int n, const std::vector<std::vector<int>>& racks, HalvingDoubling cross)
      : Pattern(n, 2 + cross.rounds(), smallest(racks) * static_cast<int>(racks.size())),
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
    const int across = cross_.members();
    const int base = shard * across;
    const int from = racks_[message.from][shard];
    const int to = racks_[message.to][shard];
    const int until_end = std::min(message.count, across - message.first);
    out.push_back({from, to, base + message.first, until_end, message.add});
    if (until_end < message.count)
      out.push_back({from, to, base, message.count - until_end, message.add});
  }

  std::vector<std::vector<int>> racks_;
  HalvingDoubling cross_;
  int shards_;
  std::vector<Place> places_;
};

}  // namespace

std::vector<RoundClass> Pattern::round_classes() const {
  std::vector<RoundClass> classes;
  for (int round = 0; round < rounds_; ++round) classes.push_back({round, 1});
  return classes;
}

std::vector<int> halving_skips(int n) {
  std::vector<int> skips{n};
  while (skips.back() > 1) skips.push_back((skips.back() + 1) / 2);
  return skips;
}

std::vector<std::vector<int>> rack_positions(const Group& group, const Cluster& cluster) {
  std::map<int, std::vector<int>> by_domain;
  int position = 0;
  for (const Rank rank : group) by_domain[cluster.workers[rank].domain].push_back(position++);
  std::vector<std::vector<int>> racks;
  for (auto& [domain, positions] : by_domain) racks.push_back(std::move(positions));
  return racks;
}

std::unique_ptr<Pattern> make_pattern(Algorithm algorithm, Collective collective, int n,
                                      const std::vector<std::vector<int>>& racks, int shift) {
  if (collective == Collective::shift) return std::make_unique<Shift>(n, shift);
  const bool whole = collective == Collective::all_reduce;
  switch (algorithm) {
    case Algorithm::ring:
      return std::make_unique<Ring>(n, collective);
    case Algorithm::direct:
      return std::make_unique<Direct>(n, collective);
    case Algorithm::recursive_doubling:
      if (whole) return std::make_unique<RecursiveDoubling>(n);
      break;
    case Algorithm::two_level:
      if (whole && racks.size() > 1) return std::make_unique<TwoLevel>(n, racks);
      break;
    case Algorithm::tree:
      if (whole) usage_error("algorithm tree has a cost formula only, no messages of its own");
      break;
    case Algorithm::halving_doubling:
    case Algorithm::automatic:
      break;
  }
  return std::make_unique<HalvingDoubling>(n, collective);
}

}  // namespace riffle
