#include "riffle/fit.h"

#include <gmock/gmock.h>

#include <filesystem>

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

struct OsuRow {
  const char* file;
  double a;
  double b;
};

// The published logs between 200 and 500 kB give the published lines.
TEST(Fit, OsuLogs) {
  const std::filesystem::path folder =
      std::filesystem::path(RIFFLE_SHARED_DIR) / "data/traces/googlenet-k80";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no published measurements at " << folder;
  for (const OsuRow& row : {OsuRow{"allreduce2.log", 1.21e-4, 1.63e-9},
                            {"allreduce4.log", 1.68e-4, 2.42e-9},
                            {"allreduce8.log", 1.11e-3, 1.99e-9}}) {
    auto points = load_osu_file(folder / row.file);
    // One line cannot follow the protocol's jumps; pieces can.
    EXPECT_LT(fit_piecewise(points).relative_residual, fit_linear(points).relative_residual / 3)
        << row.file;
    std::erase_if(points, [](const MeasuredPoint& point) {
      return point.size < Bytes{200'000} || point.size > Bytes{500'000};
    });
    const LinearFit fit = fit_linear(points);
    EXPECT_NEAR(fit.cost.a.count(), row.a, 0.005 * row.a) << row.file;
    EXPECT_NEAR(fit.cost.b.value, row.b, 0.005 * row.b) << row.file;
  }
}

}  // namespace
}  // namespace riffle
