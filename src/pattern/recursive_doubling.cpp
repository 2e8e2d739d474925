// Pairs at distance 1, 2, 4, ... exchange whole vectors. Members beyond the largest power of two
// first give theirs to a partner and get the result back at the end.
// Rounds log2 n (two more unless n is a power of two), bytes 1 per round.
#include <algorithm>
#include <bit>

#include "pattern/parts.h"

namespace riffle::pattern {
namespace {

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
  [[nodiscard]] int holders(int round) const override {
    const int doublings = round - (folded_ ? 1 : 0);
    return doublings <= 0 ? 1 : std::min(1 << doublings, power_);
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

}  // namespace

std::unique_ptr<Pattern> recursive_doubling(int n) {
  return std::make_unique<RecursiveDoubling>(n);
}

}  // namespace riffle::pattern
