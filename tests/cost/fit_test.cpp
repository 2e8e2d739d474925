#include "riffle/fit.h"

#include <gmock/gmock.h>

#include "riffle/error.h"
#include "riffle/random.h"

namespace riffle {
namespace {

std::vector<MeasuredPoint> sample(const Curve& curve, double noise) {
  Random random(5);
  std::vector<MeasuredPoint> points;
  for (int i = 1; i <= 200; ++i) {
    const Bytes size{i * 5000};
    points.push_back({size, curve(size) * (1 + noise * random.normal())});
  }
  return points;
}

TEST(Fit, FindsTheLineBehindThePoints) {
  const LinearCost truth{Seconds(1e-3), {2e-9}};
  const LinearFit exact = fit_linear(sample(Curve(truth), 0));
  EXPECT_NEAR(exact.cost.a.count(), 1e-3, 1e-12);
  EXPECT_NEAR(exact.cost.b.value, 2e-9, 1e-18);
  EXPECT_NEAR(exact.residual.count(), 0, 1e-12);
  const LinearFit noisy = fit_linear(sample(Curve(truth), 0.01));
  EXPECT_NEAR(noisy.cost.b.value, 2e-9, 2e-11);
  EXPECT_NEAR(noisy.relative_residual, 0.01, 0.002);
}

TEST(Fit, FindsAJumpAndNotMore) {
  const Curve truth(
      {{Bytes{0}, {Seconds(1e-4), {5e-9}}}, {Bytes{262'144}, {Seconds(3e-3), {2e-9}}}});
  const PiecewiseFit fit = fit_piecewise(sample(truth, 0.01));
  ASSERT_EQ(fit.curve.pieces().size(), 2);
  EXPECT_EQ(fit.curve.pieces()[1].from, Bytes{265'000});
  EXPECT_NEAR(fit.curve.pieces()[1].cost.a.count(), 3e-3, 1e-4);
  EXPECT_LT(fit.relative_residual, 0.012);
  // A straight line needs no second piece.
  EXPECT_EQ(
      fit_piecewise(sample(Curve(LinearCost{Seconds(1e-3), {2e-9}}), 0.01)).curve.pieces().size(),
      1);
}

TEST(Fit, RefusesWhatHasNoLine) {
  const std::vector<MeasuredPoint> one{{Bytes{8}, Seconds(1)}};
  EXPECT_THROW(fit_linear(one), UsageError);
  const std::vector<MeasuredPoint> zero{{Bytes{8}, Seconds(0)}, {Bytes{9}, Seconds(1)}};
  EXPECT_THROW(fit_linear(zero), UsageError);
  EXPECT_THROW(fit_piecewise({}), UsageError);
}

}  // namespace
}  // namespace riffle
