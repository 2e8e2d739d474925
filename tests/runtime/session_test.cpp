// What a session does besides running programs: accumulation, unused parameters, clipping, several
// element types, buffers, relayout, the timeline; and what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "refusal.h"
#include "runtime/agreement.h"
#include "runtime/reference.h"
#include "support/values.h"
#include "support/workers.h"

namespace riffle {
namespace {

using test::Kind;
using test::run_world;
using test::Toy;
using test::Values;
using test::Vector;

NamedStrategy make(const std::string& spec) {
  return StrategyTable::builtin().make(spec);
}

// A session over tensors of given types, filled with rank + 1.
struct Plain {
  std::vector<Values> parameters;
  std::vector<Values> buffers;
  std::unique_ptr<Session> session;

  Plain(Engine& engine, const std::string& spec, const std::vector<DType>& types, bool broadcast,
        std::size_t buffer_count = 0, SessionOptions options = {}) {
    ModelSpec model;
    const auto add = [&](std::vector<Values>& to, std::vector<TensorSpec>& specs, DType type) {
      Values& values = to.emplace_back(40, type);
      for (std::size_t i = 0; i < values.count(); ++i) values.set(i, engine.rank() + 1);
      specs.push_back({"t" + std::to_string(specs.size()), 40, type, values.view().data});
    };
    parameters.reserve(types.size());
    buffers.reserve(buffer_count);
    for (const DType type : types) add(parameters, model.parameters, type);
    for (std::size_t i = 0; i < buffer_count; ++i) add(buffers, model.buffers, DType::f32);
    options.broadcast = broadcast;
    options.measure_network = false;
    options.timeout = Seconds(20);
    session = std::make_unique<Session>(engine, make(spec), std::move(model), options);
  }
  void all_ready() {
    for (int b = 0; b < static_cast<int>(session->buckets().size()); ++b)
      if (session->wait_before_forward(b)) session->stepped(b);
    for (int p = static_cast<int>(parameters.size()); p-- > 0;)
      (void)session->mark_gradient_ready(p);
  }
};

double value(const TensorView& view, std::size_t index) {
  Values values(view.count, view.dtype);
  std::memcpy(values.view().data, view.data, values.bytes().size());
  return values.at(index);
}

void fill(const TensorView& view, double with) {
  Values values(view.count, view.dtype);
  for (std::size_t i = 0; i < view.count; ++i) values.set(i, with);
  std::memcpy(view.data, values.view().data, values.bytes().size());
}

const std::vector<DType> kMixed{DType::f32, DType::f64, DType::bf16, DType::f16, DType::f32};

TEST(Session, AveragesGradientsOfSeveralTypes) {
  for (const char* spec : {"bsp", "wfbp", "dear"})
    run_world(Kind::loopback, 3, [&](Engine& engine) {
      Plain plain(engine, spec, kMixed, true);
      Session& session = *plain.session;
      ASSERT_TRUE(session.keeps_gradients());
      EXPECT_FALSE(session.keeps_weights());
      // Parameters are rank 0's from the start.
      for (Values& each : plain.parameters) EXPECT_EQ(each.at(7), 1);
      for (int p = 0; p < 5; ++p) fill(session.gradient(p), engine.rank() + p);
      plain.all_ready();
      session.end_step();
      for (int b = 0; b < static_cast<int>(session.buckets().size()); ++b)
        (void)session.wait_before_forward(b);
      for (int p = 0; p < 5; ++p) {
        EXPECT_EQ(session.gradient(p).dtype, kMixed[p]);
        EXPECT_EQ(value(session.gradient(p), 39), 1 + p) << spec;
      }
    });
}

TEST(Session, AveragesWeightsAndBuffers) {
  run_world(Kind::loopback, 4, [&](Engine& engine) {
    Plain plain(engine, "local-sgd:tau=1", kMixed, false, 2);
    Session& session = *plain.session;
    ASSERT_TRUE(session.keeps_weights());
    EXPECT_FALSE(session.keeps_gradients());
    EXPECT_EQ(session.gradient(0).data, nullptr);
    for (int p = 0; p < 5; ++p) EXPECT_EQ(value(session.weights(p), 3), engine.rank() + 1);
    plain.all_ready();
    session.end_step();
    for (int b = 0; b < static_cast<int>(session.buckets().size()); ++b)
      (void)session.wait_before_forward(b);
    for (int p = 0; p < 5; ++p) EXPECT_EQ(value(session.weights(p), 3), 2.5);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(value(session.buffer(i), 39), 2.5);
  });
}

// A late correction keeps the mean of statistics and never turns a variance negative.
TEST(Session, CorrectsStatisticsWithoutExtrapolation) {
  run_world(Kind::loopback, 2, [&](Engine& engine) {
    Plain plain(engine, "dasgd:tau=1,delay=1", {DType::f32}, false, 1);
    Session& session = *plain.session;
    fill(session.buffer(0), engine.rank() == 0 ? 10 : 1);
    plain.all_ready();
    session.end_step();
    fill(session.buffer(0), engine.rank() == 0 ? 4 : 2);
    plain.all_ready();
    session.end_step();
    // Rank 0: 4 + (5.5 - 10) would be negative.
    EXPECT_EQ(value(session.buffer(0), 0), engine.rank() == 0 ? 4 : 6.5);
  });
}

TEST(Session, AccumulatesWithoutSync) {
  run_world(Kind::loopback, 2, [&](Engine& engine) {
    Plain plain(engine, "wfbp", {DType::f32, DType::f32}, true);
    Session& session = *plain.session;
    session.set_sync(false);
    EXPECT_EQ(session.mark_gradient_ready(1), std::nullopt);
    EXPECT_EQ(session.mark_gradient_ready(1), std::nullopt);
    fill(session.gradient(1), engine.rank());
    session.set_sync(true);
    EXPECT_EQ(session.mark_gradient_ready(0), session.bucket_of(0));
    // The other one was used before: its gradient counts, though nothing was added to it now.
    session.end_step();
    EXPECT_EQ(value(session.gradient(1), 0), 0.5);
    EXPECT_EQ(session.step(), 1);
  });
}

TEST(Session, KnowsWhatNobodyUsed) {
  run_world(Kind::loopback, 3, [&](Engine& engine) {
    Plain plain(engine, "ddp", {DType::f32, DType::bf16, DType::f32}, true);
    Session& session = *plain.session;
    for (int p = 0; p < 3; ++p) fill(session.gradient(p), 9);
    (void)session.mark_gradient_ready(2);
    if (engine.rank() == 1) (void)session.mark_gradient_ready(1);
    session.backward_done();
    for (int b = 0; b < static_cast<int>(session.buckets().size()); ++b)
      EXPECT_TRUE(session.before_step(b));
    EXPECT_FALSE(session.used(0));
    EXPECT_TRUE(session.used(1));
    EXPECT_TRUE(session.used(2));
    // What was left in the memory of an unused parameter is no gradient.
    EXPECT_EQ(value(session.gradient(0), 0), 0);
    EXPECT_EQ(value(session.gradient(1), 0), 3);
    EXPECT_EQ(value(session.gradient(2), 0), 9);
    session.end_step();
  });
}

TEST(Session, NormAndScaleSeeTheWholeGradient) {
  for (const char* spec : {"wfbp", "dear:bucket=200B"})
    run_world(Kind::loopback, 3, [&](Engine& engine) {
      Plain plain(engine, spec, {DType::f64, DType::f64, DType::f64}, true);
      Session& session = *plain.session;
      for (int p = 0; p < 3; ++p) fill(session.gradient(p), engine.rank() + p);  // mean: p + 1
      plain.all_ready();
      session.backward_done();
      EXPECT_NEAR(session.gradient_norm(), std::sqrt(40 * (1 + 4 + 9)), 1e-12) << spec;
      session.scale_gradients(0.5);
      EXPECT_NEAR(session.gradient_norm(), std::sqrt(10 * (1 + 4 + 9)), 1e-12) << spec;
      session.end_step();
      for (int b = 0; b < static_cast<int>(session.buckets().size()); ++b)
        (void)session.wait_before_forward(b);
      for (int p = 0; p < 3; ++p) {
        EXPECT_EQ(value(session.gradient(p), 39), (p + 1) / 2.0) << spec;
        EXPECT_TRUE(session.used(p)) << spec;
      }
    });
}

TEST(Session, AveragedIsACopy) {
  run_world(Kind::loopback, 4, [&](Engine& engine) {
    Toy toy(engine, "dasgd");
    toy.train(6);
    const Vector before = toy.weights();
    Vector average(before.size());
    std::vector<std::byte*> into;
    std::size_t at = 0;
    for (const std::int64_t size : test::kSizes) {
      into.push_back(reinterpret_cast<std::byte*>(average.data() + at));
      at += static_cast<std::size_t>(size);
    }
    toy.session().averaged(into);
    EXPECT_EQ(toy.weights(), before);
    const double consensus = toy.session().consensus_distance();
    EXPECT_GT(consensus, 1e-3);
    Vector sum = before;
    toy.session().average(sum);
    EXPECT_LT(test::distance(average, sum), 1e-14);
    toy.session().finish();
    EXPECT_LT(test::distance(toy.weights(), sum), 1e-14);
    EXPECT_LT(toy.session().consensus_distance(), 1e-15);
  });
}

TEST(Session, RefusesMisuse) {
  run_world(Kind::loopback, 2, [&](Engine& engine) {
    {
      Plain plain(engine, "wfbp", {DType::f32}, true);
      (void)plain.session->mark_gradient_ready(0);
      EXPECT_THAT(refusal([&] { (void)plain.session->mark_gradient_ready(0); }),
                  testing::HasSubstr("t0 came a second time in step 0"));
      EXPECT_THAT(refusal([&] { (void)plain.session->mark_gradient_ready(1); }),
                  testing::HasSubstr("parameter 1: there are 1"));
      plain.session->end_step();
    }
  });
  run_world(Kind::loopback, 2, [&](Engine& engine) {
    Plain plain(engine, "local-sgd:tau=1", {DType::f32}, true);
    (void)plain.session->mark_gradient_ready(0);
    plain.session->end_step();
    EXPECT_THAT(refusal([&] { (void)plain.session->mark_gradient_ready(0); }),
                testing::HasSubstr("wait_before_forward(0) was not called"));
  });
  run_world(Kind::loopback, 2, [&](Engine& engine) {
    EXPECT_THAT(refusal([&] { Plain(engine, "wfbp:wire=bf16", kMixed, true); }),
                testing::HasSubstr("t1 is f64: only f32 is rounded while it travels"));
  });
}

// Some have exchanges under way while the others begin theirs.
TEST(Session, SeveralLiveOnOneEngine) {
  const std::vector<std::string> specs{"sesgd", "dear", "dasgd", "asc-wfbp"};
  for (const Kind kind : {Kind::loopback, Kind::shm})
    run_world(kind, 3, [&](Engine& engine) {
      Collectives collectives(engine);
      const test::ToyOptions options{.collectives = &collectives};
      std::vector<Vector> alone;
      for (const std::string& spec : specs) {
        Toy toy(engine, spec, options);
        toy.train(12);
        toy.forward();
        alone.push_back(toy.weights());
      }
      std::vector<std::unique_ptr<Toy>> toys;
      for (const std::string& spec : specs)
        toys.push_back(std::make_unique<Toy>(engine, spec, options));
      for (const int turn : {1, 3, 6, 2})
        for (const auto& toy : toys) toy->train(turn);
      for (std::size_t i = 0; i < toys.size(); ++i) {
        toys[i]->forward();
        EXPECT_EQ(toys[i]->weights(), alone[i]) << specs[i];
      }
      toys.push_back(std::make_unique<Toy>(engine, "bsp", options));
      EXPECT_THAT(refusal([&] { Toy(engine, "bsp", options); }),
                  testing::HasSubstr("close a session that is open on it"));
      toys.erase(toys.begin());
      Toy(engine, "bsp", options).train(2);
    });
}

TEST(Session, MakesBucketsFromMeasuredTimes) {
  for (const char* spec : {"mg-wfbp", "sesgd", "dear:bucket=optimal"})
    run_world(Kind::loopback, 2, [&](Engine& engine) {
      // Modelled: tiny layers, merged into one. Measured: layers that take milliseconds.
      test::ToyOptions options{.cluster = parse_cluster("flat:2,latency=50us,bandwidth=10Gbps")};
      Toy toy(engine, spec, options);
      const std::size_t before = toy.session().buckets().size();
      bool moved = false;
      for (int i = 0; i < 10; ++i) {
        toy.forward();
        toy.backward_slowly(std::chrono::milliseconds(1));
        toy.update();
        moved |= toy.session().relayout();
      }
      toy.forward();
      EXPECT_TRUE(moved) << spec;
      EXPECT_GT(toy.session().buckets().size(), before) << spec;
      // The result does not depend on buckets.
      const World world(*options.cluster);
      EXPECT_LT(test::distance(toy.weights(), (*test::reference(spec, world, 10))[engine.rank()]),
                1e-12)
          << spec;
    });
}

// Where computing has all cores of the host, early messages hide nothing: one start-up is best.
TEST(Session, PlansForTheCoresThereAre) {
  run_world(Kind::loopback, 2, [&](Engine& engine) {
    EXPECT_EQ(runtime::overlap_share(1, 2, 1, 2), 0);
    EXPECT_EQ(runtime::overlap_share(1, 2, 1, 3), 0.5);
    EXPECT_EQ(runtime::overlap_share(1, 2, 1, 16), 1);
    EXPECT_EQ(runtime::overlap_share(1, 2, 8, 16), 0);
    Collectives collectives(engine);
    SessionOptions options{.compute_threads = 10'000, .collectives = &collectives};
    const Plain plain(engine, "mg-wfbp", kMixed, true, 0, options);
    EXPECT_EQ(plain.session->buckets().size(), 1);
    options.cluster = parse_cluster("flat:2,latency=1us,bandwidth=10Gbps");
    const Plain told(engine, "mg-wfbp", kMixed, true, 0, options);
    EXPECT_GT(told.session->buckets().size(), 1);
  });
}

TEST(Session, RecordsWhatHappened) {
  run_world(Kind::loopback, 2, [&](Engine& engine) {
    Toy toy(engine, "wfbp", {.record = true});
    toy.train(3);
    const Timeline timeline = toy.session().timeline();
    int exchanges = 0;
    for (const Event& event : timeline.events) {
      EXPECT_LE(event.start, event.end);
      EXPECT_EQ(event.rank, engine.rank());
      if (event.kind == EventKind::exchange) ++exchanges;
    }
    EXPECT_EQ(exchanges, 3 * static_cast<int>(test::kSizes.size()));
    const SessionStats stats = toy.session().stats();
    EXPECT_EQ(stats.steps, 3);
    EXPECT_GT(stats.step_time, Seconds(0));
    // 2(n-1)/n of the model.
    EXPECT_EQ(stats.bytes.count, static_cast<std::int64_t>(test::toy_elements() * sizeof(double)));
  });
}

TEST(Session, MeasuresTheNetwork) {
  run_world(Kind::loopback, 3, [&](Engine& engine) {
    Toy toy(engine, "mg-wfbp", {.measure = true});
    const Cluster& cluster = toy.session().world().cluster;
    EXPECT_GT(cluster.workers[0].link.latency, Seconds(0));
    EXPECT_GT(cluster.workers[0].link.bandwidth.bytes_per_second, 1e6);
    toy.train(2);
  });
}

}  // namespace
}  // namespace riffle
