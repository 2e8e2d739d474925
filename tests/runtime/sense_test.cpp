// Sensing on throttled links: real messages and threads, each rank a host of its own. What is slow
// here is slow by far, since the machine that runs the tests is noisy.
#include "runtime/sense.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "measure/network.h"
#include "runtime/reference.h"
#include "support/ranks.h"
#include "support/throttled_engine.h"

namespace riffle {
namespace {

using test::Throttle;
using test::Toy;
using test::Vector;

constexpr int kRanks = 4;
constexpr Seconds kUsual = milliseconds(1);
constexpr Seconds kSlow = milliseconds(50);
constexpr int kWindow = 6;
// So many steps, and a session knows what is usual: a change before that is not told from it.
constexpr int kLearned = 8 * kWindow;
constexpr Step kTooLate = 600;
const std::string kOneRack = "{0 1 2 3}";
const std::string kTwoRacks = "{0 1} {2 3}";
constexpr const char* kSpec = "ds-sync:pattern=bottleneck,delay=0,bucket=single";

std::vector<std::string> own_hosts(int n) {
  std::vector<std::string> hosts;
  for (int r = 0; r < n; ++r) hosts.push_back("host" + std::to_string(r));
  return hosts;
}

// A busy machine is no failure.
constexpr EngineOptions kPatient{.failure_timeout = Seconds(30)};

void run_throttled(const Throttle& throttle, const std::function<void(Engine&)>& body,
                   int ranks = kRanks) {
  LoopbackWorld world(own_hosts(ranks), kPatient);
  test::run_ranks(world, [&](Rank rank) {
    test::ThrottledEngine engine(world.engine(rank), throttle);
    body(engine);
  });
}

// What all ranks saw in all steps; they must have seen the same.
class Log {
 public:
  // Before a step.
  void note(Session& session) {
    const std::scoped_lock lock(mutex_);
    const auto [found, is_new] = worlds_.emplace(session.step(), session.world());
    EXPECT_EQ(found->second, session.world())
        << "rank " << session.rank() << " in step " << session.step();
  }
  void end(Session& session, Vector weights) {
    const std::scoped_lock lock(mutex_);
    std::string text;
    for (const Sensed& each : session.sensed())
      text += std::to_string(each.step) + ": " + each.what + "\n";
    if (text_.empty()) text_ = text;
    EXPECT_EQ(text, text_) << "rank " << session.rank();
    steps_ = static_cast<int>(session.step());
    weights_.resize(static_cast<std::size_t>(session.world().size()));
    weights_[static_cast<std::size_t>(session.rank())] = std::move(weights);
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] World at(Step step) const { return std::prev(worlds_.upper_bound(step))->second; }
  // The racks in the order in which they were in force.
  [[nodiscard]] std::string racks() const {
    std::string all;
    std::string last;
    for (const auto& [step, world] : worlds_) {
      const std::string racks = print(world.racks());
      if (racks != last) all += (all.empty() ? "" : " -> ") + racks;
      last = racks;
    }
    return all;
  }
  void expect_reference(const std::string& spec) const {
    ASSERT_FALSE(worlds_.empty());
    const auto expected =
        test::ds_sync_reference(spec, [&](Step step) { return at(step); }, steps_);
    for (std::size_t r = 0; r < weights_.size(); ++r)
      EXPECT_LT(test::distance(weights_[r], expected[r]), 1e-10) << "rank " << r << "\n" << text_;
  }

 private:
  std::mutex mutex_;
  std::map<Step, World> worlds_;
  std::string text_;
  int steps_ = 0;
  std::vector<Vector> weights_;
};

void train_step(Toy& toy, Log& log) {
  log.note(toy.session());
  toy.train_step();
}

void train_steps(Toy& toy, Log& log, int steps) {
  for (int i = 0; i < steps; ++i) train_step(toy, log);
}

// Trains until `done`, which must be the same on all ranks.
void train_until(Toy& toy, Log& log, const std::function<bool()>& done) {
  while (!done()) {
    ASSERT_LT(toy.session().step(), kTooLate) << "nothing was sensed";
    train_step(toy, log);
  }
}

std::string racks_of(Toy& toy) {
  return print(toy.session().world().racks());
}

TEST(Sense, FindsRacksAtTheStart) {
  Throttle throttle(kRanks);
  throttle.set_all(kUsual);
  throttle.set_between(2, kSlow);
  Log log;
  run_throttled(throttle, [&](Engine& engine) {
    Toy toy(engine, kSpec, {.measure = true});
    toy.train(5);
    log.note(toy.session());
    log.end(toy.session(), toy.weights());
  });
  EXPECT_EQ(log.racks(), kTwoRacks);
  EXPECT_EQ(log.text(), "0: sensing: 2 racks: 0-1 | 2-3\n");
  log.expect_reference(kSpec);
}

// All links alike, then those between two halves slow.
void become_slow(Toy& toy, Log& log, Throttle& throttle) {
  train_steps(toy, log, kLearned);
  if (toy.session().rank() == 0) throttle.set_between(2, kSlow);
  train_until(toy, log, [&] { return racks_of(toy) == kTwoRacks; });
  train_steps(toy, log, kWindow);
}

void expect_new_groups(const std::string& spec) {
  Throttle throttle(kRanks);
  throttle.set_all(kUsual);
  Log log;
  run_throttled(throttle, [&](Engine& engine) {
    Toy toy(engine, spec, {.measure = true, .sense_window = kWindow});
    become_slow(toy, log, throttle);
    toy.forward();
    log.end(toy.session(), toy.weights());
  });
  EXPECT_EQ(log.racks(), kOneRack + " -> " + kTwoRacks) << log.text();
  log.expect_reference(spec);
}

TEST(Sense, LinksBecomeSlowAndRecover) {
  Throttle throttle(kRanks);
  throttle.set_all(kUsual);
  Log log;
  run_throttled(throttle, [&](Engine& engine) {
    Toy toy(engine, kSpec, {.measure = true, .sense_window = kWindow});
    become_slow(toy, log, throttle);
    train_steps(toy, log, kLearned);
    if (engine.rank() == 0) throttle.set_between(2, kUsual);
    train_until(toy, log, [&] { return racks_of(toy) == kOneRack; });
    train_steps(toy, log, kWindow);
    toy.forward();
    log.end(toy.session(), toy.weights());
  });
  EXPECT_EQ(log.racks(), kOneRack + " -> " + kTwoRacks + " -> " + kOneRack) << log.text();
  log.expect_reference(kSpec);
}

TEST(Sense, LinksBecomeSlowWithADelay) {
  expect_new_groups("ds-sync:pattern=bottleneck,delay=2,bucket=layer");
}

TEST(Sense, LinksBecomeSlowWithWeightsAlwaysOnTheirWay) {
  expect_new_groups("ds-sync:pattern=bottleneck,delay=0,order=combine-then-adapt,bucket=single");
}

TEST(Sense, ASlowerUplinkIsNamed) {
  Throttle throttle(kRanks);
  throttle.set_all(kUsual);
  throttle.set_between(2, kSlow);
  const std::string spec = "ds-sync:pattern=bottleneck,bucket=single";
  Log log;
  run_throttled(throttle, [&](Engine& engine) {
    Toy toy(engine, spec, {.measure = true, .sense_window = kWindow});
    Session& session = toy.session();
    train_steps(toy, log, kLearned);
    if (engine.rank() == 0) throttle.set_between(2, 4 * kSlow);
    const Cluster known = session.world().cluster;
    train_until(toy, log, [&] { return session.world().cluster != known; });
    const Seconds uplink = session.world().cluster.domains[1].uplink.latency;
    EXPECT_GT(uplink, 2 * known.domains[1].uplink.latency);
    train_steps(toy, log, kWindow);
    toy.forward();
    log.end(session, toy.weights());
  });
  EXPECT_NE(log.text().find("uplink of rack 1 (ranks 2-3): "), std::string::npos) << log.text();
}

TEST(Sense, ASlowHostIsSetApartAndReturns) {
  constexpr int kSix = 6;  // so that groups are larger than pairs
  Throttle throttle(kSix);
  throttle.set_all(kUsual);
  Log log;
  const auto largest_of = [](Session& session, Rank rank) {
    int largest = 0;
    for (Step step = 0; step < 12; ++step)
      for (const Exchange& each :
           session.strategy()->program(step, session.world(), session.buckets()).exchanges)
        if (each.group.contains(rank)) largest = std::max(largest, each.group.size());
    return largest;
  };
  run_throttled(
      throttle,
      [&](Engine& engine) {
        Toy toy(engine, kSpec, {.measure = true, .sense_window = kWindow});
        train_steps(toy, log, kLearned);
        EXPECT_EQ(largest_of(toy.session(), 4), 3);
        if (engine.rank() == 0) throttle.set_host(4, kSlow);
        train_until(toy, log, [&] { return largest_of(toy.session(), 4) == 2; });
        train_steps(toy, log, kLearned);
        if (engine.rank() == 0) throttle.set_host(4, kUsual);
        train_until(toy, log, [&] { return largest_of(toy.session(), 4) == 3; });
        toy.forward();
        log.end(toy.session(), toy.weights());
      },
      kSix);
  EXPECT_EQ(log.racks(), "{0 1 2 3 4 5}");
  EXPECT_NE(log.text().find("slow: 4 (link)"), std::string::npos) << log.text();
  log.expect_reference(kSpec);
}

TEST(Sense, AHostThatComputesSlowlyIsSetApart) {
  Throttle throttle(kRanks);
  throttle.set_all(kUsual);
  Log log;
  run_throttled(throttle, [&](Engine& engine) {
    Toy toy(engine, kSpec, {.measure = true, .sense_window = kWindow});
    const auto slow = [&] { return toy.session().world().cluster.workers[2].slow > 1; };
    const auto pause = [&](int milliseconds) {
      while (!slow() == (milliseconds > 4)) {
        ASSERT_LT(toy.session().step(), kTooLate) << "nothing was sensed";
        log.note(toy.session());
        toy.forward();
        toy.backward_slowly(std::chrono::milliseconds(engine.rank() == 2 ? milliseconds : 4));
        toy.update();
      }
    };
    pause(40);
    pause(4);
    toy.forward();
    log.end(toy.session(), toy.weights());
  });
  EXPECT_NE(log.text().find("rank 2: computes "), std::string::npos) << log.text();
  EXPECT_NE(log.text().find("rank 2: computes as fast as is usual again"), std::string::npos);
  log.expect_reference(kSpec);
}

// A throttled link charges for each message, whatever its size: with slower ones than these, rates
// would tell of the pieces that a measurement takes, which are smaller from its third round on.
TEST(Sense, NoiseChangesNothing) {
  Throttle throttle(kRanks);
  throttle.set_all(kUsual);
  throttle.set_jitter(0.8);
  Log log;
  run_throttled(throttle, [&](Engine& engine) {
    Toy toy(engine, kSpec, {.measure = true, .sense_window = kWindow});
    const Cluster known = toy.session().world().cluster;
    train_steps(toy, log, 20 * kWindow);
    EXPECT_EQ(toy.session().world().cluster, known);
    toy.forward();
    log.end(toy.session(), toy.weights());
  });
  EXPECT_EQ(log.racks(), kOneRack) << log.text();
  log.expect_reference(kSpec);
}

// Trains with relayout(), as adapters do, until `done`.
void train_moving(Toy& toy, const std::function<bool()>& done) {
  while (!done()) {
    ASSERT_LT(toy.session().step(), kTooLate) << "nothing was sensed";
    toy.train_step();
    (void)toy.session().relayout();
  }
}

void expect_synchronous(const Toy& toy, Session& session) {
  const auto expected = test::reference("bsp", session.world(), static_cast<int>(session.step()));
  EXPECT_LT(test::distance(toy.weights(), expected->at(session.rank())), 1e-10);
}

// The slower the links, the larger the buckets; weights are those of synchronous SGD all along.
TEST(Sense, BucketsAreMergedAnewAndBack) {
  Throttle throttle(kRanks);
  throttle.set_all(kUsual);
  run_throttled(throttle, [&](Engine& engine) {
    Toy toy(engine, "mg-wfbp", {.measure = true, .sense_window = kWindow});
    Session& session = toy.session();
    const auto train = [&](int steps) {
      const Step end = session.step() + steps;
      train_moving(toy, [&] { return session.step() >= end; });
    };
    const auto latency = [&] { return session.world().cluster.latency(0, 1); };
    train(kLearned);
    const Seconds before = latency();
    if (engine.rank() == 0) throttle.set_all(kSlow);
    train_moving(toy, [&] { return latency() > 5 * before; });
    EXPECT_EQ(session.buckets().size(), 1U) << session.sensed().back().what;
    EXPECT_THAT(session.sensed().back().what, testing::HasSubstr("predicted"));
    train(kLearned);
    if (engine.rank() == 0) throttle.set_all(kUsual);
    train_moving(toy, [&] { return latency() < 5 * before; });
    train(2);
    toy.forward();
    expect_synchronous(toy, session);
  });
}

TEST(Sense, AutoPlansAgain) {
  Throttle throttle(kRanks);
  throttle.set_all(kUsual);
  run_throttled(throttle, [&](Engine& engine) {
    Toy toy(engine, "auto", {.measure = true, .sense_window = kWindow});
    Session& session = toy.session();
    train_moving(toy, [&] { return session.step() >= kLearned; });
    ASSERT_TRUE(session.plan());
    const Cluster planned = *session.plan()->network;
    if (engine.rank() == 0) throttle.set_all(kSlow);
    train_moving(toy, [&] { return *session.plan()->network != planned; });
    const Step end = session.step() + 4;
    train_moving(toy, [&] { return session.step() >= end; });
    toy.forward();
    expect_synchronous(toy, session);
  });
}

// The groups that were sensed are part of what is saved.
TEST(Sense, AResumedRunHasTheSameGroups) {
  constexpr int kAfter = 4;
  const std::string spec = "ds-sync:pattern=bottleneck,delay=2,bucket=layer";
  Throttle throttle(kRanks);
  throttle.set_all(kUsual);
  Log log;
  run_throttled(throttle, [&](Engine& engine) {
    Collectives collectives(engine);
    std::vector<std::byte> bytes;
    Vector x;
    Vector v;
    Vector expected;
    {
      Toy toy(engine, spec,
              {.collectives = &collectives, .measure = true, .sense_window = kWindow});
      become_slow(toy, log, throttle);
      toy.train(2);
      bytes = toy.session().save();
      x = toy.weights();
      v = toy.velocity;
      toy.train(kAfter);
      expected = toy.weights();
    }
    Toy toy(engine, spec, {.resume = bytes, .start = 77, .collectives = &collectives});
    EXPECT_EQ(racks_of(toy), kTwoRacks);
    toy.set_weights(x);
    toy.velocity.assign(v.begin(), v.end());
    toy.train(kAfter);
    EXPECT_EQ(toy.weights(), expected) << "rank " << engine.rank();
  });
}

TEST(Sense, OnlyWhereItIsOfUse) {
  Throttle throttle(kRanks);
  run_throttled(throttle, [&](Engine& engine) {
    Collectives collectives(engine);
    const auto senses = [&](const std::string& spec, test::ToyOptions options) {
      options.collectives = &collectives;
      return !Toy(engine, spec, options).session().sensed().empty();
    };
    EXPECT_TRUE(senses(kSpec, {.measure = true}));
    EXPECT_FALSE(senses(kSpec, {.measure = true, .sense = false}));
    EXPECT_FALSE(senses(kSpec, {.measure = false}));
    EXPECT_FALSE(senses(kSpec, {.cluster = parse_cluster("flat:4,latency=20us,bandwidth=10Gbps"),
                                .measure = true}));
    EXPECT_TRUE(senses("mg-wfbp", {.measure = true}));
    EXPECT_TRUE(senses("auto", {.measure = true}));
    EXPECT_FALSE(senses("auto:replan=false", {.measure = true}));
    EXPECT_FALSE(senses("wfbp", {.measure = true})) << "has nothing to change";
  });
}

TEST(Probe, NamesWhoIsGone) {
  LoopbackWorld world(own_hosts(3));
  world.kill(2);
  test::run_ranks(world, [&](Rank rank) {
    if (rank == 2) return;
    Engine& engine = world.engine(rank);
    Collectives collectives(engine);
    const collective::Control control{collectives, Membership::all(3).ranks, Seconds(20)};
    try {
      (void)measure::measure_network(measure::Place(engine, control));
      ADD_FAILURE() << "rank " << rank << " has seen nothing";
    } catch (const CommError& error) {
      EXPECT_EQ(error.rank(), 2) << error.what();
    }
  });
}

}  // namespace
}  // namespace riffle
