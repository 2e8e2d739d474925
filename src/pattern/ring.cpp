// Every member passes a block to its right neighbour in each round.
// Patarasuk and Yuan, 2009. Rounds 2(n-1), bytes 2(n-1)/n.
#include "pattern/parts.h"

namespace riffle::pattern {
namespace {

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

}  // namespace

std::unique_ptr<Pattern> ring(int n, Collective collective) {
  return std::make_unique<Ring>(n, collective);
}

}  // namespace riffle::pattern
