#include "verify/spectrum.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "riffle/random.h"

namespace riffle::verifier {
namespace {

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
void subtract(Vector& from, double factor, const Vector& what) {
  for (std::size_t i = 0; i < from.size(); ++i) from[i] -= factor * what[i];
}
void scale(Vector& values, double factor) {
  for (double& value : values) value *= factor;
}

// A small dense matrix, row by row.
struct Matrix {
  std::size_t size;
  Vector entries;
  explicit Matrix(std::size_t n) : size(n), entries(n * n, 0) {}
  double& at(std::size_t row, std::size_t column) { return entries[row * size + column]; }

  [[nodiscard]] Matrix squared() const {
    Matrix product(size);
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t k = 0; k < size; ++k) {
        const double factor = entries[i * size + k];
        if (factor == 0) continue;
        for (std::size_t j = 0; j < size; ++j)
          product.entries[i * size + j] += factor * entries[k * size + j];
      }
    return product;
  }
};

// The limit of |M^(2^k)|^(1/2^k), Gelfand's formula, by repeated squaring in logarithms.
double radius(Matrix matrix) {
  constexpr int kSquarings = 48;
  double logarithm = 0;
  for (int k = 0; k < kSquarings; ++k) {
    const double norm = std::sqrt(dot(matrix.entries, matrix.entries));
    if (norm < 1e-140) return 0;  // nilpotent
    logarithm += std::ldexp(std::log(norm), -k);
    scale(matrix.entries, 1 / norm);
    matrix = matrix.squared();
  }
  return std::exp(logarithm);
}

}  // namespace

double spectral_radius(const std::function<Vector(const Vector&)>& map, std::size_t dimension) {
  const std::size_t most = std::min(dimension, kKrylov);
  Random random(17);
  Vector first(dimension);
  for (double& value : first) value = random.normal();
  std::vector<Vector> basis{map(first)};  // into the range of the map
  const double length = std::sqrt(dot(basis[0], basis[0]));
  if (length < 1e-13 * std::sqrt(static_cast<double>(dimension))) return 0;
  scale(basis[0], 1 / length);

  Matrix hessenberg(most);
  std::size_t used = 0;
  while (used < most) {
    Vector next = map(basis[used]);
    const double before = std::sqrt(dot(next, next));
    for (int pass = 0; pass < 2; ++pass)  // twice is enough to stay orthogonal
      for (std::size_t i = 0; i <= used; ++i) {
        const double part = dot(basis[i], next);
        hessenberg.at(i, used) += part;
        subtract(next, part, basis[i]);
      }
    const double rest = std::sqrt(dot(next, next));
    ++used;
    if (used == most || rest <= 1e-12 * std::max(before, 1e-3)) break;
    hessenberg.at(used, used - 1) = rest;
    scale(next, 1 / rest);
    basis.push_back(std::move(next));
  }
  Matrix closed(used);
  for (std::size_t i = 0; i < used; ++i)
    for (std::size_t j = 0; j < used; ++j) closed.at(i, j) = hessenberg.at(i, j);
  return radius(std::move(closed));
}

}  // namespace riffle::verifier
