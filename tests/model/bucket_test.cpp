#include "riffle/bucket.h"

#include <gmock/gmock.h>

#include "random_data.h"
#include "riffle/error.h"

namespace riffle {
namespace {

using testing::ElementsAre;

Trace four_layers() {
  Trace trace;
  // A second each way, so a bucket computes for two seconds a layer.
  for (const int elements : {1, 10, 100, 1000})
    trace.layers.push_back({fmt::format("l{}", elements), elements, Seconds(1), Seconds(1)});
  return trace;
}

TEST(Buckets, CountFromTheLastLayerBackward) {
  const Trace trace = four_layers();
  EXPECT_THAT(make_buckets(trace, {1, 3}), ElementsAre(Bucket{0, 3, 3, Bytes{4000}, Seconds(2)},
                                                       Bucket{1, 0, 2, Bytes{444}, Seconds(6)}));
  EXPECT_THAT(one_bucket(trace), ElementsAre(Bucket{0, 0, 3, Bytes{4444}, Seconds(8)}));
  EXPECT_THAT(
      bucket_per_layer(trace),
      ElementsAre(Bucket{0, 3, 3, Bytes{4000}, Seconds(2)}, Bucket{1, 2, 2, Bytes{400}, Seconds(2)},
                  Bucket{2, 1, 1, Bytes{40}, Seconds(2)}, Bucket{3, 0, 0, Bytes{4}, Seconds(2)}));
  EXPECT_EQ(print(make_buckets(trace, {1, 3}), trace),
            "bucket 0: l1000 .. l1000 (1 layers, 3.91 KiB)\n"
            "bucket 1: l1 .. l100 (3 layers, 444 B)\n");
}

TEST(Buckets, SizesThatDoNotCoverTheLayersAreABug) {
  const Trace trace = four_layers();
  EXPECT_THROW(make_buckets(trace, {1, 2}), InternalError);
  EXPECT_THROW(make_buckets(trace, {5}), InternalError);
  EXPECT_THROW(make_buckets(trace, {0, 4}), InternalError);
}

TEST(Buckets, HoldEachLayerOnce) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const Trace trace = random_trace(random);
    std::vector<int> sizes;
    for (int left = static_cast<int>(trace.layers.size()); left > 0; left -= sizes.back())
      sizes.push_back(1 + static_cast<int>(random.below(static_cast<std::uint64_t>(left))));
    const BucketPlan plan = make_buckets(trace, sizes);
    std::vector<int> seen(trace.layers.size());
    Bytes sum;
    Seconds compute{};
    for (const Bucket& bucket : plan) {
      for (int layer = bucket.first; layer <= bucket.last; ++layer) ++seen[layer];
      sum += bucket.bytes;
      compute += bucket.compute;
    }
    ASSERT_THAT(seen, testing::Each(1)) << "seed " << seed;
    ASSERT_EQ(sum, trace.bytes()) << "seed " << seed;
    ASSERT_NEAR(compute / (trace.forward() + trace.backward()), 1, 1e-12) << "seed " << seed;
  }
}

}  // namespace
}  // namespace riffle
