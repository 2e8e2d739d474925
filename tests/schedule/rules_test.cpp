// Every rule of a step against what is written here by hand.
#include "schedule/rules.h"

#include <gtest/gtest.h>

#include "support/programs.h"

namespace riffle::schedule {
namespace {

Exchange gradient(Start start, Due due, Merge merge = replace()) {
  return {
      .payload = Payload::gradient, .group = {0, 1}, .start = start, .due = due, .merge = merge};
}
Exchange weight(Start start, Due due, Merge merge = replace()) {
  return {.payload = Payload::weight, .group = {0, 1}, .start = start, .due = due, .merge = merge};
}

TEST(Chains, InFlightBothMustReplace) {
  const Exchange rows = weight(Start::bucket_stepped, before_forward());
  Exchange columns = weight(Start::step_done, before_forward());
  columns.lane = 1;
  EXPECT_TRUE(chains_in_flight(rows, columns));
  EXPECT_EQ(refusal(rows, columns), "");
  EXPECT_EQ(refusal(rows, weight(Start::step_done, before_forward(), outer(1, 0))), "");
  for (const Merge& merge : {mix(0.5), correct(), outer(1, 0)}) {
    const Exchange other = weight(Start::bucket_stepped, before_forward(), merge);
    EXPECT_TRUE(chains_in_flight(other, columns));
    EXPECT_NE(refusal(other, columns), "") << print(other);
  }
  EXPECT_NE(refusal(rows, weight(Start::step_done, before_forward(), mix(0.5))), "");
  // One that is due before the other starts is waited for at its due point.
  EXPECT_FALSE(chains_in_flight(weight(Start::bucket_ready, after_step()), columns));
}

TEST(Points, StandInTheOrderOfAStep) {
  EXPECT_LT(Point::before_forward, point_of(Start::bucket_ready));
  EXPECT_LT(point_of(Start::bucket_ready), point_of(Start::backward_done));
  EXPECT_LT(point_of(Start::backward_done), point_of(DuePoint::before_step));
  EXPECT_LT(point_of(DuePoint::before_step), Point::update);
  EXPECT_LT(Point::update, point_of(DuePoint::after_step));
  EXPECT_EQ(point_of(DuePoint::after_step), point_of(Start::bucket_stepped));
  EXPECT_LT(point_of(Start::bucket_stepped), point_of(Start::step_done));
  EXPECT_EQ(point_of(DuePoint::before_forward), Point::before_forward);
  EXPECT_LT(moment(3, Point::step_done), moment(4, Point::before_forward));
}

TEST(Moments, AreStepAndPoint) {
  const Exchange late = weight(Start::bucket_ready, after_step(2));
  EXPECT_EQ(taken(late, 5), moment(5, Point::gradient_ready));
  EXPECT_EQ(merged(late, 5), moment(7, Point::stepped));
  EXPECT_EQ(step_of(merged(late, 5)), 7);
  EXPECT_EQ(point_at(merged(late, 5)), Point::stepped);
  EXPECT_EQ(moment_of(before_forward(1)), moment(1, Point::before_forward));
  EXPECT_EQ(merged(weight(Start::step_done, before_forward()), 0), moment_of(before_forward()));
}

TEST(Postpones, OnlyAGradientThatIsMergedAfterItsUpdate) {
  EXPECT_FALSE(postpones(gradient(Start::bucket_ready, before_step())));
  EXPECT_TRUE(postpones(gradient(Start::step_done, before_forward())));
  EXPECT_TRUE(postpones(gradient(Start::bucket_ready, after_step())));
  EXPECT_TRUE(postpones(gradient(Start::bucket_ready, before_step(1))));
  EXPECT_FALSE(postpones(weight(Start::bucket_stepped, before_forward())));
  EXPECT_FALSE(postpones(weight(Start::bucket_ready, after_step(3))));
}

TEST(Chains, ThoseOfOneBucketAndPayloadThatAreMergedInOrder) {
  const Exchange first = gradient(Start::bucket_ready, before_step());
  const Exchange second = gradient(Start::backward_done, before_step());
  EXPECT_TRUE(chains(first, second));
  Exchange other = second;
  other.bucket = 1;
  EXPECT_FALSE(chains(first, other));
  other = second;
  other.payload = Payload::state;
  EXPECT_FALSE(chains(first, other));
  // dear: what was scattered is gathered.
  EXPECT_TRUE(chains(first, gradient(Start::step_done, before_forward())));
  // A delayed one runs beside what is due earlier, and is followed by what is due later.
  const Exchange delayed = weight(Start::bucket_ready, after_step(2), correct());
  EXPECT_FALSE(chains(delayed, weight(Start::bucket_stepped, before_forward())));
  EXPECT_TRUE(chains(delayed, weight(Start::bucket_stepped, before_forward(3))));
}

TEST(Chains, DelegatesOfDsSyncDoNotChainWithTheirRacks) {
  const World world = test::racks("2x3");
  int pairs = 0;
  for (Step step = 0; step < 3; ++step) {
    const Program program = test::program("ds-sync:pattern=bottleneck,delay=2", step, world);
    for (std::size_t i = 0; i < program.exchanges.size(); ++i)
      for (std::size_t j = i + 1; j < program.exchanges.size(); ++j) {
        const Exchange& crossing = program.exchanges[i];
        const Exchange& inside = program.exchanges[j];
        if (crossing.lane != 1 || inside.lane != 0 || crossing.bucket != inside.bucket) continue;
        EXPECT_FALSE(chains(crossing, inside)) << print(crossing) << " and " << print(inside);
        ++pairs;
      }
  }
  EXPECT_GT(pairs, 0);
}

TEST(Overwrites, ReplaceAndOuter) {
  const auto with = [](Merge merge) {
    return weight(Start::bucket_stepped, before_forward(), merge);
  };
  EXPECT_TRUE(overwrites(with(replace())));
  EXPECT_TRUE(overwrites(with(outer(0.7, 0.9))));
  EXPECT_FALSE(overwrites(with(outer(0.7, 0.9, true, 0.5))));  // it keeps a local share
  EXPECT_FALSE(overwrites(with(mix(0.5))));
  EXPECT_FALSE(overwrites(with(correct())));
}

TEST(NextWrite, BackwardWritesGradientsAndTheUpdateWeights) {
  EXPECT_EQ(next_write(Payload::gradient, moment(2, Point::before_forward)),
            moment(2, Point::gradient_ready));
  EXPECT_EQ(next_write(Payload::gradient, moment(2, Point::gradient_ready)),
            moment(3, Point::gradient_ready));
  EXPECT_EQ(next_write(Payload::weight, moment(2, Point::gradient_ready)),
            moment(2, Point::update));
  EXPECT_EQ(next_write(Payload::weight, moment(2, Point::stepped)), moment(3, Point::update));
  EXPECT_EQ(next_write(Payload::state, moment(2, Point::step_done)), moment(3, Point::update));
}

TEST(Continues, AScatterGoesOnToItsGather) {
  Exchange scatter = gradient(Start::bucket_ready, before_step());
  scatter.collective = Collective::reduce_scatter;
  Exchange gather = gradient(Start::step_done, before_forward());
  gather.collective = Collective::all_gather;
  EXPECT_TRUE(continues(scatter, gather));
  EXPECT_FALSE(continues(gather, scatter));
  const auto changed = [&](auto change) {
    Exchange other = gather;
    change(other);
    return continues(scatter, other);
  };
  EXPECT_FALSE(changed([](Exchange& e) { e.lane = 1; }));
  EXPECT_FALSE(changed([](Exchange& e) { e.bucket = 1; }));
  EXPECT_FALSE(changed([](Exchange& e) { e.group = {0, 2}; }));
  EXPECT_FALSE(changed([](Exchange& e) { e.payload = Payload::weight; }));
  EXPECT_FALSE(changed([](Exchange& e) { e.collective = Collective::all_reduce; }));
  // A scatter that is mixed has a value of its own to wait for.
  scatter.merge = mix(0.5);
  EXPECT_FALSE(continues(scatter, gather));
}

TEST(TravelsInPlace, WhereNobodyLooks) {
  struct Row {
    Exchange exchange;
    bool in_place;
  };
  const auto buffers = [](Exchange exchange) {
    exchange.payload = Payload::buffers;
    return exchange;
  };
  const auto state = [](Exchange exchange) {
    exchange.payload = Payload::state;
    return exchange;
  };
  const std::vector<Row> rows{
      {gradient(Start::bucket_ready, before_step()), true},
      {gradient(Start::backward_done, before_step()), true},
      {gradient(Start::step_done, before_forward()), true},
      {gradient(Start::bucket_ready, before_step(), mix(0.5)), false},
      {gradient(Start::bucket_ready, before_step(), correct()), false},
      {gradient(Start::bucket_ready, before_step(1)), false},
      {weight(Start::bucket_stepped, before_forward()), true},
      {weight(Start::step_done, before_forward()), true},
      {weight(Start::step_done, before_forward(), outer(0.7, 0.9)), true},
      {weight(Start::step_done, before_forward(), outer(0.7, 0.9, true, 0.5)), false},
      {weight(Start::bucket_ready, before_forward()), false},  // the update comes between
      {weight(Start::bucket_ready, before_step()), false},
      {weight(Start::bucket_stepped, before_forward(2)), false},
      {weight(Start::bucket_stepped, after_step(1)), false},
      {weight(Start::bucket_stepped, before_forward(), correct()), false},
      {weight(Start::bucket_stepped, before_forward(), mix(0.5)), false},
      {buffers(weight(Start::bucket_stepped, before_forward())), true},
      {buffers(weight(Start::bucket_ready, before_forward())), false},
      {state(weight(Start::bucket_stepped, before_forward())), false},
  };
  for (const Row& row : rows)
    EXPECT_EQ(travels_in_place(row.exchange), row.in_place) << print(row.exchange);
}

TEST(Refusal, SaysWhyNoWorkerCanRunIt) {
  const auto why = [](Exchange exchange, auto change) {
    change(exchange);
    return refusal(exchange);
  };
  const Exchange plain = weight(Start::bucket_stepped, before_forward());
  EXPECT_EQ(refusal(plain), "");
  EXPECT_EQ(why(plain, [](Exchange& e) { e.wire = Wire::bf16; }), "");
  EXPECT_EQ(why(plain,
                [](Exchange& e) {
                  e.wire = Wire::bf16;
                  e.payload = Payload::state;
                }),
            "only gradients and weights are rounded; use wire=f32");
  EXPECT_EQ(why(plain, [](Exchange& e) { e.lane = 15; }), "there are lanes 0 to 14");
  EXPECT_EQ(why(plain, [](Exchange& e) { e.lane = -1; }), "there are lanes 0 to 14");
  EXPECT_EQ(why(plain, [](Exchange& e) { e.lane = 14; }), "");
  EXPECT_EQ(why(plain, [](Exchange& e) { e.merge = outer(0.7, 0.9); }), "");
  EXPECT_EQ(why(plain,
                [](Exchange& e) {
                  e.merge = outer(0.7, 0.9);
                  e.payload = Payload::state;
                }),
            "an outer optimizer is for weights");
  EXPECT_EQ(why(plain,
                [](Exchange& e) {
                  e.merge = outer(0.7, 0.9);
                  e.due = before_forward(2);
                }),
            "an outer step without a local share is due before the next forward");
  EXPECT_EQ(why(plain,
                [](Exchange& e) {
                  e.merge = outer(0.7, 0.9, false, 0.5);
                  e.due = after_step(2);
                }),
            "");
  EXPECT_EQ(why(plain,
                [](Exchange& e) {
                  e.collective = Collective::reduce_scatter;
                  e.due = after_step(1);
                }),
            "half of an all_reduce must replace before the value is used");
}

}  // namespace
}  // namespace riffle::schedule
