#include "pattern/reduce.h"

#include <utility>

#include "pattern/broadcast.h"

namespace riffle::pattern {
namespace {

class Backward : public Pattern {
 public:
  explicit Backward(std::unique_ptr<Pattern> forward)
      : Pattern(forward->members(), forward->rounds(), forward->blocks()),
        forward_(std::move(forward)) {}

  void sends(int member, int round, std::vector<Message>& out) const override {
    const auto first = static_cast<std::ptrdiff_t>(out.size());
    forward_->receives(member, rounds() - 1 - round, out);
    turn_around(out, first);
  }
  void receives(int member, int round, std::vector<Message>& out) const override {
    const auto first = static_cast<std::ptrdiff_t>(out.size());
    forward_->sends(member, rounds() - 1 - round, out);
    turn_around(out, first);
  }

 private:
  static void turn_around(std::vector<Message>& messages, std::ptrdiff_t first) {
    for (auto each = messages.begin() + first; each != messages.end(); ++each) {
      std::swap(each->from, each->to);
      each->add = true;
    }
  }

  std::unique_ptr<Pattern> forward_;
};

}  // namespace

std::unique_ptr<Pattern> make_reduce_pattern(Algorithm algorithm, int n, int root,
                                             const std::vector<std::vector<int>>& racks) {
  return std::make_unique<Backward>(make_broadcast_pattern(algorithm, n, root, racks));
}

}  // namespace riffle::pattern
