#include <gtest/gtest.h>

#include <cmath>

#include "riffle/error.h"
#include "riffle/random.h"
#include "verify/rational.h"
#include "verify/spectrum.h"

namespace riffle::verifier {
namespace {

TEST(Rational, ArithmeticIsExact) {
  const Rational third = Rational(1) / Rational(3);
  EXPECT_EQ(third + third + third, Rational(1));
  EXPECT_EQ(third - Rational(1), Rational(-2) * third);
  EXPECT_EQ(Rational::from(0.375), Rational(3) / Rational(8));
  EXPECT_EQ(Rational::from(-1536), Rational(-1536));
  EXPECT_NE(Rational::from(0.1) + Rational::from(0.2), Rational::from(0.3));
  EXPECT_EQ(Rational::from(0), Rational());
}

TEST(Rational, NumbersThatAreTooLongAreRefused) {
  EXPECT_THROW(Rational::from(1e300), UsageError);
  EXPECT_THROW(Rational::from(1e30) * Rational::from(1e30), UsageError);
  EXPECT_THROW(Rational::from(1e-20) + Rational::from(1e20), UsageError);
}

TEST(Residue, FollowsTheFractions) {
  EXPECT_EQ(Residue(1) / Residue(3) * Residue(3), Residue(1));
  EXPECT_EQ(Residue(2) - Residue(5) + Residue(3), Residue());
  EXPECT_EQ(Residue::from(0.375), Residue(3) / Residue(8));
  EXPECT_EQ(Residue::from(-0.25), Residue() - Residue(1) / Residue(4));
  EXPECT_EQ(Residue::from(std::ldexp(5, 70)), Residue(5) * Residue(1 << 9));
  EXPECT_EQ(Residue(Residue::kPrime), Residue());
  const Residue large(Residue::kPrime - 1);
  EXPECT_EQ(large * large, Residue(1));
}

TEST(Spectrum, RotationAndShrinking) {
  // Eigenvalues 0.9 exp(+-i), 0.5: complex and dominating.
  const auto map = [](const Vector& v) {
    const double c = 0.9 * std::cos(1.0);
    const double s = 0.9 * std::sin(1.0);
    return Vector{c * v[0] - s * v[1], s * v[0] + c * v[1], 0.5 * v[2]};
  };
  EXPECT_NEAR(spectral_radius(map, 3), 0.9, 1e-12);
}

TEST(Spectrum, NilpotentUpToTheRootOfRounding) {
  const auto map = [](const Vector& v) { return Vector{v[1], v[2], 0}; };
  EXPECT_LT(spectral_radius(map, 3), 1e-5);
  EXPECT_EQ(spectral_radius([](const Vector& v) { return Vector(v.size(), 0); }, 3), 0);
}

TEST(Spectrum, ManyDimensions) {
  // Far more dimensions than the Krylov space has; one eigenvalue stands out.
  const auto map = [](const Vector& v) {
    Vector out(v.size());
    for (std::size_t i = 0; i < v.size(); ++i)
      out[i] = (i == 7 ? 0.97 : 0.9 * std::cos(static_cast<double>(i))) * v[i];
    return out;
  };
  EXPECT_NEAR(spectral_radius(map, 500), 0.97, 1e-9);
}

}  // namespace
}  // namespace riffle::verifier
