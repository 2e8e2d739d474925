#include "riffle/random.h"

#include <cmath>
#include <numbers>
#include <numeric>

namespace riffle {

Random::Random(std::uint64_t seed, std::uint64_t stream) : state_(seed) {
  // Two rounds of mixing separate neighbouring streams of neighbouring seeds.
  state_ = next() ^ (stream * 0xd1342543de82ef95ULL);
  state_ = next();
}

std::uint64_t Random::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::uint64_t Random::below(std::uint64_t bound) {
  // Values under `reject` would make the first residues more likely than the others.
  const std::uint64_t reject = (0 - bound) % bound;
  std::uint64_t value = next();
  while (value < reject) value = next();
  return value % bound;
}

double Random::uniform() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

double Random::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

std::vector<int> Random::permutation(int n) {
  std::vector<int> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  shuffle(std::span(order));
  return order;
}

}  // namespace riffle
