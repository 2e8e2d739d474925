#include "verify/rational.h"

#include <cmath>

#include "riffle/error.h"

namespace riffle::verifier {
namespace {

Wide greatest_divisor(Wide a, Wide b) {
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

[[noreturn]] void too_long() {
  usage_error("verify: weights need more than 127 bits to be added exactly");
}
Wide times(Wide a, Wide b) {
  Wide product = 0;
  if (__builtin_mul_overflow(a, b, &product)) too_long();
  return product;
}
Wide plus(Wide a, Wide b) {
  Wide sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) too_long();
  return sum;
}

// value = digits * 2^exponent, digits odd or zero.
struct Binary {
  std::int64_t digits;
  int exponent;
};
Binary binary(double value) {
  RIFFLE_CHECK(std::isfinite(value));
  int exponent = 0;
  auto digits = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
  exponent -= 53;
  while (digits != 0 && digits % 2 == 0) {
    digits /= 2;
    ++exponent;
  }
  return {digits, exponent};
}

}  // namespace

Rational::Rational(Wide up, Wide down) : up_(up), down_(down) {
  RIFFLE_CHECK(down != 0);
  const Wide common = greatest_divisor(up, down);
  if (common > 1) {
    up_ /= common;
    down_ /= common;
  }
  if (down_ < 0) {
    up_ = -up_;
    down_ = -down_;
  }
}

Rational Rational::from(double value) {
  const auto [digits, exponent] = binary(value);
  if (digits == 0) return {};
  if (std::abs(exponent) > 120) too_long();
  const Wide power = Wide{1} << std::abs(exponent);
  return exponent < 0 ? Rational(digits, power) : Rational(times(digits, power), 1);
}

Rational Rational::operator+(const Rational& other) const {
  const Wide common = greatest_divisor(down_, other.down_);
  return {plus(times(up_, other.down_ / common), times(other.up_, down_ / common)),
          times(down_, other.down_ / common)};
}
Rational Rational::operator-(const Rational& other) const {
  return *this + Rational(-other.up_, other.down_);
}
Rational Rational::operator*(const Rational& other) const {
  const Rational a(up_, other.down_);
  const Rational b(other.up_, down_);
  return {times(a.up_, b.up_), times(a.down_, b.down_)};
}
Rational Rational::operator/(const Rational& other) const {
  return *this * Rational(other.down_, other.up_);
}

Residue Residue::from(double value) {
  const auto [digits, exponent] = binary(value);
  Residue result(static_cast<std::uint64_t>(std::abs(digits)));
  // 2^61 is 1, so powers of two, also negative ones, only need the exponent modulo 61.
  const int shift = ((exponent % 61) + 61) % 61;
  result = result * Residue(std::uint64_t{1} << shift);
  return digits < 0 ? Residue() - result : result;
}

Residue Residue::operator*(Residue other) const {
  __extension__ using WideUnsigned = unsigned __int128;
  const WideUnsigned product = static_cast<WideUnsigned>(value_) * other.value_;
  return {static_cast<std::uint64_t>(product & kPrime) + static_cast<std::uint64_t>(product >> 61)};
}

Residue Residue::operator/(Residue other) const {
  RIFFLE_CHECK(other.value_ != 0);
  Residue inverse(1);  // other^(p-2), by Fermat
  for (std::uint64_t bits = kPrime - 2; bits != 0; bits >>= 1) {
    if (bits & 1) inverse = inverse * other;
    other = other * other;
  }
  return *this * inverse;
}

}  // namespace riffle::verifier
