#include "converge/kernels.h"

#include <gtest/gtest.h>

#include <vector>

#include "riffle/random.h"

namespace riffle::convergence {
namespace {

std::vector<double> random_values(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = random.normal();
  return values;
}

class Sizes : public testing::TestWithParam<std::tuple<int, int, int>> {};

// Against the definition, plain and with the left factor transposed; the variants bit by bit.
TEST_P(Sizes, ProductsAreRight) {
  const auto [m, n, k] = GetParam();
  const auto a = random_values(m * k, 1);
  const auto b = random_values(k * n, 2);
  for (const bool transposed : {false, true}) {
    const Factor left{a.data(), std::size_t(transposed ? 1 : k), std::size_t(transposed ? m : 1)};
    std::vector<double> c(m * n);
    std::vector<double> portable(m * n);
    kernels().multiply(m, n, k, left, b.data(), c.data());
    portable_kernels.multiply(m, n, k, left, b.data(), portable.data());
    EXPECT_EQ(c, portable);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int p = 0; p < k; ++p)
          sum += a[i * left.row_stride + p * left.column_stride] * b[p * n + j];
        EXPECT_NEAR(c[i * n + j], sum, 1e-12);
      }
  }
}
INSTANTIATE_TEST_SUITE_P(Kernels, Sizes,
                         testing::Values(std::tuple{1, 1, 1}, std::tuple{32, 64, 20},
                                         std::tuple{13, 10, 7}, std::tuple{7, 3, 5},
                                         std::tuple{6, 8, 1}, std::tuple{8, 33, 64}));

TEST(Kernels, UpdatesAreAsTorchHasThem) {
  for (const Kernels* each : {&portable_kernels, &kernels()}) {
    auto x = random_values(11, 1);
    auto v = random_values(11, 2);
    const auto g = random_values(11, 3);
    const auto x0 = x;
    const auto v0 = v;
    each->sgd(x.data(), v.data(), g.data(), x.size(), {0.1, 0.9, 0.01});
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_DOUBLE_EQ(v[i], 0.9 * v0[i] + (g[i] + 0.01 * x0[i]));
      EXPECT_DOUBLE_EQ(x[i], x0[i] - 0.1 * v[i]);
    }
  }
}

}  // namespace
}  // namespace riffle::convergence
