#include "pattern/broadcast.h"

#include <algorithm>
#include <bit>

namespace riffle::pattern {
namespace {

int ceil_log2(int n) {
  return std::bit_width(static_cast<unsigned>(n - 1));
}

// A pattern in which member p (counted from the root) hears once, from parent(p) in round(p).
class Tree : public Pattern {
 public:
  Tree(int n, int root, int rounds) : Pattern(n, rounds, 1), root_(root), links_(n) {}

  void sends(int member, int round, std::vector<Message>& out) const override {
    for (const Link& link : links_[place(member)].children)
      if (link.round == round) out.push_back({member, at(link.peer), 0, 1, false});
  }
  void receives(int member, int round, std::vector<Message>& out) const override {
    const Link& parent = links_[place(member)].parent;
    if (parent.round == round) out.push_back({at(parent.peer), member, 0, 1, false});
  }

 protected:
  void link(int parent, int child, int round) {
    links_[parent].children.push_back({child, round});
    links_[child].parent = {parent, round};
  }
  [[nodiscard]] int place(int member) const { return (member - root_ + members()) % members(); }

 private:
  struct Link {
    int peer = -1;
    int round = -1;
  };
  struct Links {
    Link parent;
    std::vector<Link> children;
  };
  [[nodiscard]] int at(int place) const { return (place + root_) % members(); }

  int root_;
  std::vector<Links> links_;
};

class Chain : public Tree {
 public:
  Chain(int n, int root) : Tree(n, root, n - 1) {
    for (int p = 1; p < n; ++p) link(p - 1, p, p - 1);
  }
};

class Star : public Tree {
 public:
  Star(int n, int root) : Tree(n, root, std::min(n - 1, 1)) {
    for (int p = 1; p < n; ++p) link(0, p, 0);
  }
};

// In round r the first 2^r members send to the next 2^r.
class Binomial : public Tree {
 public:
  Binomial(int n, int root) : Tree(n, root, ceil_log2(n)) {
    for (int p = 1; p < n; ++p) {
      const int round = std::bit_width(static_cast<unsigned>(p)) - 1;
      link(p - (1 << round), p, round);
    }
  }
};

class AcrossThenInside : public Tree {
 public:
  AcrossThenInside(int n, int root, const std::vector<std::vector<int>>& racks) : Tree(n, root, 2) {
    for (const auto& rack : racks) {
      const bool home = std::ranges::find(rack, root) != rack.end();
      const int head = home ? 0 : place(rack.front());
      if (!home) link(0, head, 0);
      for (const int member : rack)
        if (place(member) != head) link(head, place(member), 1);
    }
  }
};

}  // namespace

std::unique_ptr<Pattern> make_broadcast_pattern(Algorithm algorithm, int n, int root,
                                                const std::vector<std::vector<int>>& racks) {
  switch (algorithm) {
    case Algorithm::ring:
      return std::make_unique<Chain>(n, root);
    case Algorithm::direct:
      return std::make_unique<Star>(n, root);
    case Algorithm::two_level:
      if (racks.size() > 1) return std::make_unique<AcrossThenInside>(n, root, racks);
      break;
    default:
      break;
  }
  return std::make_unique<Binomial>(n, root);
}

}  // namespace riffle::pattern
