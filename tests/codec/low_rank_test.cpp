#include "codec/low_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "riffle/random.h"

namespace riffle::codec {
namespace {

template <typename T>
class LowRankOf : public testing::Test {
 protected:
  static constexpr std::size_t kRows = 37;
  static constexpr std::size_t kColumns = 50;
  static constexpr std::size_t kRank = 3;
  static constexpr double kRounding = 200 * std::numeric_limits<T>::epsilon();

  void step() {
    take_left(factors_, lost_.data());
    take_right(factors_);
    put_back(factors_, lost_.data());
  }
  static T dot(const T* a, const T* b, std::size_t count) {
    T sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += a[i] * b[i];
    return sum;
  }
  static void expect_orthonormal(const std::vector<T>& columns, std::size_t length) {
    for (std::size_t i = 0; i < columns.size() / length; ++i)
      for (std::size_t k = 0; k <= i; ++k)
        EXPECT_NEAR(dot(&columns[i * length], &columns[k * length], length), i == k ? 1 : 0,
                    kRounding)
            << i << " " << k;
  }

  std::vector<T> matrix_ = std::vector<T>(kRows * kColumns);
  std::vector<T> lost_ = std::vector<T>(kRows * kColumns);
  std::vector<T> left_ = std::vector<T>(kRows * kRank);
  std::vector<T> right_ = std::vector<T>(kColumns * kRank);
  Factors<T> factors_{matrix_.data(), kRows, kColumns, left_.data(), right_.data(), kRank};
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(LowRankOf, Types);

TYPED_TEST(LowRankOf, AMatrixOfTheRankComesBack) {
  Random random(1);
  for (std::size_t k = 0; k < this->kRank; ++k) {
    std::vector<double> a(this->kRows);
    std::vector<double> b(this->kColumns);
    for (double& each : a) each = random.normal();
    for (double& each : b) each = random.normal();
    for (std::size_t i = 0; i < a.size(); ++i)
      for (std::size_t j = 0; j < b.size(); ++j)
        this->matrix_[i * b.size() + j] += static_cast<TypeParam>(a[i] * b[j]);
  }
  const auto before = this->matrix_;
  draw_right(this->factors_, 7);
  this->step();
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(this->matrix_[i], before[i], 50 * this->kRounding);
    EXPECT_NEAR(this->lost_[i], 0, 50 * this->kRounding);
  }
}

TYPED_TEST(LowRankOf, NothingIsLostAndFactorsFollow) {
  Random random(2);
  std::vector<TypeParam> always(this->matrix_.size());
  for (TypeParam& each : always) each = static_cast<TypeParam>(random.normal());
  draw_right(this->factors_, 0);
  std::vector<double> delivered(always.size());
  constexpr int kSteps = 60;
  for (int step = 0; step < kSteps; ++step) {
    this->matrix_ = always;
    this->factors_.matrix = this->matrix_.data();
    this->step();
    for (std::size_t i = 0; i < always.size(); ++i) delivered[i] += this->matrix_[i];
    this->expect_orthonormal(this->left_, this->kRows);
  }
  double kept = 0;
  double all = 0;
  for (std::size_t i = 0; i < always.size(); ++i) {
    EXPECT_NEAR(delivered[i] + this->lost_[i], kSteps * always[i], 100 * this->kRounding);
    kept += this->lost_[i] * this->lost_[i];
    all += kSteps * always[i] * (kSteps * always[i]);
  }
  // Without feedback 3 columns of 37 would leave most of it behind.
  EXPECT_LT(std::sqrt(kept / all), 0.5);
}

TYPED_TEST(LowRankOf, ColumnsThatVanishBeginAnew) {
  draw_right(this->factors_, 0);
  this->step();  // of a zero gradient: an unused layer
  Random random(3);
  for (TypeParam& each : this->matrix_) each = static_cast<TypeParam>(random.normal());
  this->step();
  this->expect_orthonormal(this->left_, this->kRows);
  double size = 0;
  for (const TypeParam each : this->matrix_) size += each * each;
  EXPECT_GT(size, 1);
  // Two columns that are one and a half times the first.
  for (std::size_t k = 0; k < this->kColumns; ++k)
    this->right_[this->kColumns + k] = this->right_[2 * this->kColumns + k] =
        this->right_[k] * static_cast<TypeParam>(1.5);
  orthonormalize(this->right_.data(), this->kColumns, this->kRank);
  this->expect_orthonormal(this->right_, this->kColumns);
}

TYPED_TEST(LowRankOf, WhatIsNotANumberIsPassedOnAndNeverKept) {
  draw_right(this->factors_, 0);
  this->matrix_[5] = std::numeric_limits<TypeParam>::quiet_NaN();
  this->step();
  EXPECT_FALSE(std::isfinite(this->matrix_[5]));
  for (const TypeParam each : this->lost_) EXPECT_TRUE(std::isfinite(each));
  for (TypeParam& each : this->matrix_) each = 1;
  this->step();
  for (const TypeParam each : this->matrix_) EXPECT_NEAR(each, 1, 100 * this->kRounding);
}

}  // namespace
}  // namespace riffle::codec
