// The patterns, one file each. Users call make_pattern.
#pragma once

#include "pattern/pattern.h"

namespace riffle::pattern {

std::unique_ptr<Pattern> ring(int n, Collective collective);
std::unique_ptr<Pattern> halving_doubling(int n, Collective collective);
std::unique_ptr<Pattern> recursive_doubling(int n);
std::unique_ptr<Pattern> direct(int n, Collective collective);
std::unique_ptr<Pattern> shift(int n, int places);
std::unique_ptr<Pattern> two_level(int n, const std::vector<std::vector<int>>& racks);

// A collective that is a reduce_scatter, an all_gather, or both in this order.
struct Halves {
  bool scatter;
  bool gather;
  explicit Halves(Collective collective)
      : scatter(collective != Collective::all_gather),
        gather(collective != Collective::reduce_scatter) {}
  [[nodiscard]] int count() const { return (scatter ? 1 : 0) + (gather ? 1 : 0); }
};

inline int wrap(int index, int n) {
  const int rest = index % n;
  return rest < 0 ? rest + n : rest;
}

}  // namespace riffle::pattern
