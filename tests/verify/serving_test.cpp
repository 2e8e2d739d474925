// Values that are served: what is proved of them, and that the proof finds what is wrong.
#include "verify/serving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/verify.h"
#include "strategies/example.h"
#include "support/programs.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using verifier::play_serving;

Verification proof_of(const std::string& spec, const World& world) {
  return verify(test::make(spec), world, example_trace());
}

TEST(Serving, IsProved) {
  for (const int n : {2, 3, 16}) {
    const Verification free = proof_of("asp", test::flat(n));
    EXPECT_TRUE(free.ok());
    EXPECT_EQ(free.serving->ahead, -1);
    EXPECT_GT(free.serving->orders, 10);
    EXPECT_FALSE(free.steps_to_consensus);
    const Verification bound = proof_of("ssp:staleness=3", test::flat(n));
    EXPECT_TRUE(bound.ok());
    EXPECT_EQ(bound.serving->ahead, 3);
    EXPECT_EQ(bound.steps_to_consensus, 4);
    EXPECT_EQ(proof_of("ssp:staleness=0", test::flat(n)).steps_to_consensus, 1);
  }
  EXPECT_FALSE(proof_of("asp", test::flat(1)).serving);
  EXPECT_FALSE(proof_of("bsp", test::flat(4)).serving);
}

TEST(Serving, OwnersThatLetWorkersRunAheadAreFound) {
  for (const int ahead : {-1, 1, 4}) {
    std::string found;
    for (std::uint64_t seed = 0; seed < 64 && found.empty(); ++seed)
      found = play_serving(3, ahead, 0, seed);
    EXPECT_THAT(found, HasSubstr("behind")) << ahead;
    for (std::uint64_t seed = 0; seed < 64; ++seed)
      EXPECT_EQ(play_serving(3, ahead, ahead, seed), "") << ahead;
  }
}

TEST(Serving, WhatNobodyCanServeIsRefused) {
  const World world = test::flat(2);
  const auto problem_of = [&](auto change) {
    Exchange exchange{.payload = Payload::weight,
                      .group = {0, 1},
                      .collective = Collective::serve,
                      .start = Start::bucket_stepped,
                      .due = before_forward()};
    change(exchange);
    const Verification found =
        verify({Program{{exchange}}}, true, world, one_bucket(test::trace(1)));
    return found.problems.empty() ? "" : found.problems.front().what;
  };
  EXPECT_EQ(problem_of([](Exchange&) {}), "");
  EXPECT_THAT(problem_of([](Exchange& e) { e.merge = correct(); }), HasSubstr("replaces"));
  EXPECT_THAT(problem_of([](Exchange& e) { e.due = after_step(1); }), HasSubstr("replaces"));
  EXPECT_THAT(problem_of([](Exchange& e) { e.payload = Payload::state; }), HasSubstr("weights"));
  EXPECT_THAT(problem_of([](Exchange& e) { e.weights = {1, 2}; }), HasSubstr("the same"));
  EXPECT_THAT(problem_of([](Exchange& e) { e.wire = Wire::int8; }), HasSubstr("wire=f32"));
  EXPECT_THAT(problem_of([](Exchange& e) {
                e.collective = Collective::all_reduce;
                e.ahead = 1;
              }),
              HasSubstr("ahead"));
}

}  // namespace
}  // namespace riffle
