// The largest growth factor of a linear map that is known only by what it does to vectors.
#pragma once

#include <functional>
#include <vector>

namespace riffle::verifier {

using Vector = std::vector<double>;

// The spectral radius, by Arnoldi's method: exact up to rounding where the Krylov space closes or
// the dimension is at most kKrylov, else a close estimate from below. Deterministic.
double spectral_radius(const std::function<Vector(const Vector&)>& map, std::size_t dimension);
constexpr std::size_t kKrylov = 128;

}  // namespace riffle::verifier
