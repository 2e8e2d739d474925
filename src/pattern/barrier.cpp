#include "pattern/barrier.h"

#include <bit>

namespace riffle::pattern {
namespace {

class Dissemination : public Pattern {
 public:
  explicit Dissemination(int n) : Pattern(n, std::bit_width(static_cast<unsigned>(n - 1)), 1) {}

  void sends(int member, int round, std::vector<Message>& out) const override {
    out.push_back({member, (member + (1 << round)) % members(), 0, 1, false});
  }
  void receives(int member, int round, std::vector<Message>& out) const override {
    out.push_back({(member - (1 << round) + members()) % members(), member, 0, 1, false});
  }
};

}  // namespace

std::unique_ptr<Pattern> make_barrier_pattern(Algorithm algorithm, int n,
                                              const std::vector<std::vector<int>>& racks) {
  if (algorithm == Algorithm::automatic) return std::make_unique<Dissemination>(n);
  return make_pattern(algorithm, Collective::all_reduce, n, racks);
}

}  // namespace riffle::pattern
