#include <algorithm>
#include <cmath>

#include "riffle/cost.h"
#include "riffle/error.h"

namespace riffle {

Curve::Curve(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {
  if (pieces_.empty() || pieces_.front().from != Bytes{0})
    usage_error("curve: the first piece must start at 0 bytes");
  const auto ascending = [](const Piece& a, const Piece& b) { return a.from >= b.from; };
  if (std::ranges::adjacent_find(pieces_, ascending) != pieces_.end())
    usage_error("curve: the pieces must ascend in size");
}

const Curve::Piece& Curve::piece(Bytes size) const {
  if (pieces_.size() == 1) return pieces_.front();
  const auto after = std::ranges::upper_bound(pieces_, size, {}, &Piece::from);
  return *(after == pieces_.begin() ? after : after - 1);
}

Curve Curve::cheapest(const std::vector<Piece>& lines) {
  RIFFLE_CHECK(!lines.empty());
  // Walk along the lower envelope: from each size, the line that next undercuts the present one.
  const auto flatter = [](const Piece& a, const Piece& b) {
    return std::pair(a.cost.a, a.cost.b) < std::pair(b.cost.a, b.cost.b);
  };
  Piece now = *std::ranges::min_element(lines, flatter);
  now.from = Bytes{0};
  std::vector<Piece> pieces{now};
  while (true) {
    const Piece* next = nullptr;
    double best = 0;
    for (const Piece& line : lines) {
      const double gain = now.cost.b.value - line.cost.b.value;
      if (gain <= 0) continue;
      const double cross = (line.cost.a - now.cost.a).count() / gain;
      if (next == nullptr || cross < best || (cross == best && line.cost.b < next->cost.b)) {
        next = &line;
        best = cross;
      }
    }
    if (next == nullptr || best > 9e15) return Curve(std::move(pieces));
    now = *next;
    now.from = Bytes{static_cast<std::int64_t>(std::ceil(best))};
    if (now.from <= pieces.back().from)
      pieces.back() = {pieces.back().from, now.cost, now.algorithm};
    else
      pieces.push_back(now);
  }
}

}  // namespace riffle
