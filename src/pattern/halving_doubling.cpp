// Halving-doubling for any n: the circulant schedule. In the scatter half member i sends the blocks
// of the members from i+s on to i+s, where s halves each time; the gather half runs it backward.
// For a power of two it has the rounds and volume of recursive halving and doubling.
// Traff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", arXiv:2410.14234.
// Rounds 2*ceil(log2 n), bytes 2(n-1)/n.
#include "pattern/parts.h"

namespace riffle::pattern {
namespace {

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

}  // namespace

std::unique_ptr<Pattern> halving_doubling(int n, Collective collective) {
  return std::make_unique<HalvingDoubling>(n, collective);
}

}  // namespace riffle::pattern
