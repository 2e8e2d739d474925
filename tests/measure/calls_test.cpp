// Links from the times of two calls: made-up times, no network.
#include "measure/calls.h"

#include <gtest/gtest.h>

namespace riffle::measure {
namespace {

Cluster flat(int n, const Link& link) {
  Cluster cluster;
  cluster.domains.push_back({"root", -1, {}});
  cluster.workers.assign(static_cast<std::size_t>(n), {.domain = 0, .link = link});
  return cluster;
}

// Both calls as the cost model prices them on a link give that link back, for every number of
// members: powers of two, where small calls are recursive doubling, and others; up to 8, where
// direct is in the choice, and beyond.
TEST(Calls, GiveTheLinkThatTheyWerePricedOn) {
  const Link link{microseconds(150), {125e6}};
  for (const int n : {2, 3, 4, 5, 7, 8, 9, 16, 31, 32, 64}) {
    TellingCalls calls = telling_calls(n);
    for (TimedCall* call : {&calls.small, &calls.large})
      call->time =
          CostModel(flat(n, link))
              .time({.group = Membership::all(n).ranks, .algorithm = call->algorithm}, call->size);
    const Link found = link_of(n, calls);
    EXPECT_NEAR(found.latency / link.latency, 1, 1e-9) << n;
    EXPECT_NEAR(found.bandwidth.bytes_per_second / link.bandwidth.bytes_per_second, 1, 1e-9) << n;
  }
}

// What runs when latency is all that counts, so that its count is the one to divide by.
TEST(Calls, SmallOnesAreTheAlgorithmOfFewestLatencies) {
  EXPECT_EQ(telling_calls(2).small.algorithm, Algorithm::recursive_doubling);
  EXPECT_EQ(telling_calls(16).small.algorithm, Algorithm::recursive_doubling);
  EXPECT_EQ(telling_calls(5).small.algorithm, Algorithm::direct);
}

// A disturbed measurement gives a link that is absurdly good, not a negative one.
TEST(Calls, ALargeCallThatTookLessIsNoNegativeBandwidth) {
  TellingCalls calls = telling_calls(4);
  calls.small.time = milliseconds(1);
  calls.large.time = microseconds(1);
  const Link found = link_of(4, calls);
  EXPECT_GT(found.latency, Seconds{});
  EXPECT_GT(found.bandwidth.bytes_per_second, 1e9);
}

}  // namespace
}  // namespace riffle::measure
