// Everybody sends each block straight to its owner, then owners send results to everybody.
// Rounds 2, bytes 2(n-1)/n in 2(n-1) messages.
#include "pattern/parts.h"

namespace riffle::pattern {
namespace {

class Direct : public Pattern {
 public:
  Direct(int n, Collective collective)
      : Pattern(n, n > 1 ? Halves(collective).count() : 0, n), halves_(collective) {}

  void sends(int member, int round, std::vector<Message>& out) const override {
    const bool add = halves_.scatter && round == 0;
    // Each begins with another: what all send first would meet at one member's link.
    for (int i = 1; i < members(); ++i) {
      const int other = (member + i) % members();
      out.push_back({member, other, add ? other : member, 1, add});
    }
  }
  void receives(int member, int round, std::vector<Message>& out) const override {
    const bool add = halves_.scatter && round == 0;
    for (int other = 0; other < members(); ++other)
      if (other != member) out.push_back({other, member, add ? member : other, 1, add});
  }

 private:
  Halves halves_;
};

}  // namespace

std::unique_ptr<Pattern> direct(int n, Collective collective) {
  return std::make_unique<Direct>(n, collective);
}

}  // namespace riffle::pattern
