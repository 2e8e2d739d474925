// Exact arithmetic for proofs: small fractions, and residues for long products.
#pragma once

#include <cstdint>
#include <string>

namespace riffle::verifier {

__extension__ using Wide = __int128;

// A fraction in lowest terms. Every double is one; UsageError where numbers get too long.
class Rational {
 public:
  Rational(std::int64_t whole = 0) : up_(whole) {}  // NOLINT(google-explicit-constructor)
  static Rational from(double value);

  Rational operator+(const Rational& other) const;
  Rational operator-(const Rational& other) const;
  Rational operator*(const Rational& other) const;
  Rational operator/(const Rational& other) const;
  bool operator==(const Rational&) const = default;
  [[nodiscard]] double value() const {
    return static_cast<double>(up_) / static_cast<double>(down_);
  }

 private:
  Rational(Wide up, Wide down);
  Wide up_ = 0;
  Wide down_ = 1;
};

// A number modulo the prime 2^61 - 1. An identity between fractions holds here when it holds; one
// that does not hold passes for random values with a chance of about 2^-61. So a product of any
// length is checked exactly at the price of integers.
class Residue {
 public:
  static constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
  Residue(std::uint64_t value = 0)
      : value_(value % kPrime) {}  // NOLINT(google-explicit-constructor)
  static Residue from(double value);

  Residue operator+(Residue other) const { return {value_ + other.value_}; }
  Residue operator-(Residue other) const { return {value_ + kPrime - other.value_}; }
  Residue operator*(Residue other) const;
  Residue operator/(Residue other) const;
  bool operator==(const Residue&) const = default;

 private:
  std::uint64_t value_;
};

}  // namespace riffle::verifier
