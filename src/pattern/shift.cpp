// Send the whole vector some places on, receive from as many places back (one-peer gossip).
#include "pattern/parts.h"

namespace riffle::pattern {
namespace {

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

}  // namespace

std::unique_ptr<Pattern> shift(int n, int places) {
  return std::make_unique<Shift>(n, places);
}

}  // namespace riffle::pattern
