// Collectives whose values travel rounded: all members hold the same bits, nothing goes missing
// (what was put in is what came out and what members know they have lost), and errors are bounded.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "codec/codec.h"
#include "refusal.h"
#include "riffle/collective.h"
#include "riffle/random.h"
#include "support/ranks.h"
#include "support/workers.h"

namespace riffle {
namespace {

constexpr std::size_t kExact = 5;

struct Member {
  std::vector<float> before;
  std::vector<float> after;
  std::vector<float> lost;
};

std::vector<Member> members_of(int n, std::size_t count) {
  std::vector<Member> all(static_cast<std::size_t>(n));
  for (std::size_t m = 0; m < all.size(); ++m) {
    Random random(17 + m);
    for (std::size_t i = 0; i < count; ++i)
      all[m].before.push_back(static_cast<float>(random.normal()));
    all[m].after = all[m].before;
    all[m].lost.assign(count, 0);
  }
  return all;
}

CollectiveOptions options_for(Member& member, Wire wire, Algorithm algorithm,
                              std::span<const double> weights) {
  return {.weights = weights,
          .algorithm = algorithm,
          .timeout = Seconds(60),
          .rounding = {wire, member.lost.data(), kExact}};
}

// sum(w*before) = sum(w*(after + lost)) where `after` is what each member has of the mean.
void expect_nothing_missing(const std::vector<Member>& all, const std::vector<double>& weights,
                            const std::string& what) {
  for (std::size_t i = 0; i < all.front().before.size(); ++i) {
    double missing = 0;
    for (std::size_t m = 0; m < all.size(); ++m)
      missing +=
          weights[m] * (static_cast<double>(all[m].before[i]) - all[m].after[i] - all[m].lost[i]);
    ASSERT_NEAR(missing, 0, 2e-5 * static_cast<double>(all.size())) << what << ", value " << i;
  }
}

std::vector<double> weights_of(int n, bool equal) {
  std::vector<double> weights(static_cast<std::size_t>(n), 1);
  if (!equal) std::iota(weights.begin(), weights.end(), 1);
  return weights;
}

// Every member on a host of its own, or three to a host, so that all of it is messages.
class Rounded : public testing::TestWithParam<std::tuple<Algorithm, int, Wire>> {};

TEST_P(Rounded, AllReduceIsTheSameForAllAndLosesNothing) {
  const auto [algorithm, n, wire] = GetParam();
  for (const bool equal : {true, false})
    for (const std::size_t count : {std::size_t{6}, std::size_t{1000}, std::size_t{70001}}) {
      const std::string what =
          fmt::format("{} {} {} of {}", name_of(algorithm), n, name_of(wire), count);
      const std::vector<double> weights = weights_of(n, equal);
      std::vector<Member> all = members_of(n, count);
      LoopbackWorld world(test::hosts_of_three(n));
      test::run_ranks(world, [&](Rank rank) {
        Collectives collectives(world.engine(rank));
        Member& own = all[static_cast<std::size_t>(rank)];
        collectives.all_reduce(
            Membership::all(n).ranks, tensor_view(std::span(own.after)),
            options_for(own, wire, algorithm, equal ? std::span<const double>{} : weights));
      });
      for (const Member& each : all) ASSERT_EQ(each.after, all.front().after) << what;
      expect_nothing_missing(all, weights, what);
      const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (std::size_t i = 0; i < count; ++i) {
        double mean = 0;
        for (std::size_t m = 0; m < all.size(); ++m) mean += weights[m] * all[m].before[i] / total;
        const bool exact = i + kExact >= count;
        // Each of at most n roundings of sums of values below 5.
        const double bound = exact ? 1e-5 : 2 * n * 5 * codec::error_bound(wire) + 1e-5;
        ASSERT_NEAR(all.front().after[i], mean, bound) << what << ", value " << i;
      }
    }
}

// Of algorithms that have halves.
class RoundedHalves : public Rounded {};

TEST_P(RoundedHalves, DoTheSame) {
  const auto [algorithm, n, wire] = GetParam();
  const std::size_t count = 5000;
  std::vector<Member> all = members_of(n, count);
  LoopbackWorld world(test::hosts_of_three(n));
  test::run_ranks(world, [&](Rank rank) {
    Collectives collectives(world.engine(rank));
    Member& own = all[static_cast<std::size_t>(rank)];
    const auto options = options_for(own, wire, algorithm, {});
    const TensorView data = tensor_view(std::span(own.after));
    collectives.reduce_scatter(Membership::all(n).ranks, data, options);
    collectives.all_gather(Membership::all(n).ranks, data, options);
  });
  for (const Member& each : all) ASSERT_EQ(each.after, all.front().after);
  expect_nothing_missing(all, weights_of(n, true), "halves");
}

std::string name_of_case(const testing::TestParamInfo<Rounded::ParamType>& each) {
  std::string name = fmt::format("{}_{}_{}", name_of(std::get<0>(each.param)),
                                 std::get<1>(each.param), name_of(std::get<2>(each.param)));
  std::ranges::replace(name, '-', '_');
  return name;
}

const auto kSizes = testing::Values(2, 3, 4, 6);
const auto kWires = testing::Values(Wire::bf16, Wire::f16, Wire::int8);

INSTANTIATE_TEST_SUITE_P(AnyN, Rounded,
                         testing::Combine(testing::Values(Algorithm::ring, Algorithm::direct,
                                                          Algorithm::halving_doubling,
                                                          Algorithm::recursive_doubling,
                                                          Algorithm::two_level),
                                          kSizes, kWires),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(AnyN, RoundedHalves,
                         testing::Combine(testing::Values(Algorithm::ring, Algorithm::direct,
                                                          Algorithm::halving_doubling),
                                          kSizes, kWires),
                         name_of_case);

TEST(RoundedShift, KeepsTheSum) {
  for (const Wire wire : {Wire::bf16, Wire::int8}) {
    std::vector<Member> all = members_of(5, 3000);
    LoopbackWorld world(test::hosts_of_three(5));
    test::run_ranks(world, [&](Rank rank) {
      Collectives collectives(world.engine(rank));
      Member& own = all[static_cast<std::size_t>(rank)];
      collectives.shift(Membership::all(5).ranks, 2, tensor_view(std::span(own.after)),
                        options_for(own, wire, Algorithm::direct, {}));
    });
    expect_nothing_missing(all, weights_of(5, true), "shift");
  }
}

TEST(RoundedInSharedMemory, IsTheSameForAllAndLosesNothing) {
  std::vector<Member> all = members_of(3, 5000);
  test::run_world(test::Kind::shm, 3, [&](Engine& engine) {
    // Ranks may be processes: each sees its own part.
    Collectives collectives(engine);
    Member own = members_of(3, 5000)[static_cast<std::size_t>(engine.rank())];
    const auto options = options_for(own, Wire::int8, Algorithm::automatic, {});
    const Group ranks = Membership::all(3).ranks;
    collectives.all_reduce(ranks, tensor_view(std::span(own.after)), options);
    std::vector<float> first = own.after;
    collectives.broadcast(ranks, 0, tensor_view(std::span(first)));
    EXPECT_EQ(first, own.after);
    // after + lost, and what was put in, over all members.
    std::vector<float> kept(own.after.size());
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = own.after[i] + own.lost[i];
    std::vector<float> before = own.before;
    collectives.all_reduce(ranks, tensor_view(std::span(kept)));
    collectives.all_reduce(ranks, tensor_view(std::span(before)));
    for (std::size_t i = 0; i < kept.size(); ++i) ASSERT_NEAR(kept[i], before[i], 1e-5);
  });
}

TEST(Rounding, RefusesWhatItIsNotFor) {
  LoopbackWorld world(test::hosts_of_three(2));
  Collectives collectives(world.engine(0));
  const Group ranks = Membership::all(2).ranks;
  std::vector<double> wide(8);
  std::vector<float> values(8);
  CollectiveOptions options{.rounding = {.wire = Wire::int8}};
  EXPECT_THAT(
      refusal([&] { collectives.all_reduce(ranks, tensor_view(std::span(wide)), options); }),
      testing::HasSubstr("of f64: only sums, means and gathers of f32 are rounded to int8"));
  EXPECT_THAT(
      refusal([&] { collectives.broadcast(ranks, 0, tensor_view(std::span(values)), options); }),
      testing::HasSubstr("only sums, means and gathers"));
  options.rounding.exact = 9;
  EXPECT_THAT(
      refusal([&] { collectives.all_reduce(ranks, tensor_view(std::span(values)), options); }),
      testing::HasSubstr("9 of 8 values are exact"));
}

}  // namespace
}  // namespace riffle
