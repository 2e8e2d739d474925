// What a watch notices of a gradient that was changed.
#include "torch/watch.h"

#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace riffle::adapter {
namespace {

using at::Tensor;

TEST(GradientWatch, NoticesScalingAndClampingBehindTheVersion) {
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16})
    for (const std::int64_t size : {1, 5, 5000, 9001}) {
      const std::vector<Tensor> gradients{at::rand({size}, at::kDouble).sub(0.5).to(type)};
      GradientWatch watch;
      EXPECT_FALSE(watch.changed(gradients));
      watch.mark(gradients, false);
      EXPECT_FALSE(watch.changed(gradients));
      gradients[0].data().mul_(1.0);
      EXPECT_FALSE(watch.changed(gradients));
      const double most = gradients[0].abs().max().item<double>();
      gradients[0].data().clamp_(-most, most);
      EXPECT_FALSE(watch.changed(gradients));

      const Tensor before = gradients[0].clone();
      gradients[0].data().mul_(0.5);
      EXPECT_EQ(watch.changed(gradients), 0U);
      gradients[0].data().copy_(before);
      EXPECT_FALSE(watch.changed(gradients));
      gradients[0].data().clamp_(-most * 0.9, most * 0.9);
      EXPECT_EQ(watch.changed(gradients), 0U);
    }
}

TEST(GradientWatch, CopiesMissNothing) {
  const std::vector<Tensor> gradients{at::rand({4, 5}), Tensor(), at::rand({6})};
  GradientWatch watch;
  watch.mark(gradients, true);
  EXPECT_FALSE(watch.changed(gradients));
  const std::int64_t least = gradients[2].argmin().item<std::int64_t>();
  gradients[2].data()[least] = 0;
  EXPECT_EQ(watch.changed(gradients), 2U);
}

TEST(GradientWatch, NoticesOtherTensors) {
  std::vector<Tensor> gradients{at::rand({3}), Tensor()};
  GradientWatch watch;
  watch.mark(gradients, false);
  gradients[1] = at::zeros({2});
  EXPECT_EQ(watch.changed(gradients), 1U);
  watch.mark(gradients, false);
  gradients[0] = gradients[0].clone();
  EXPECT_EQ(watch.changed(gradients), 0U);
  watch.clear();
  EXPECT_FALSE(watch.changed(gradients));
}

}  // namespace
}  // namespace riffle::adapter
