// Exchanges that start from each other's results while they are in flight, on lanes of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "riffle/session.h"
#include "support/workers.h"

namespace riffle {
namespace {

constexpr int kWorkers = 4;
constexpr std::size_t kElements = 1 << 18;

// The mean of all in two exchanges, each on its own lane: first of rows, then of columns, which may
// start while the rows are in flight.
class RowsThenColumns : public Strategy {
 public:
  explicit RowsThenColumns(Payload payload) : payload_(payload) {}
  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& /*cost*/,
                                   const World& /*world*/) const override {
    return bucket_per_layer(trace);
  }
  [[nodiscard]] Program program(Step /*step*/, const World& /*world*/,
                                const BucketPlan& buckets) const override {
    Program program;
    for (const Bucket& bucket : buckets)
      for (const auto& [lane, groups] :
           {std::pair{0, Partition{{0, 1}, {2, 3}}}, std::pair{1, Partition{{0, 2}, {1, 3}}}})
        for (const Group& group : groups)
          program.add({.bucket = bucket.id,
                       .payload = payload_,
                       .group = group,
                       .lane = lane,
                       .start = start_of(lane),
                       .due = gradients() ? before_step() : before_forward()});
    return program;
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override { return {}; }

 private:
  [[nodiscard]] bool gradients() const { return payload_ == Payload::gradient; }
  [[nodiscard]] Start start_of(int lane) const {
    if (gradients()) return lane == 0 ? Start::bucket_ready : Start::backward_done;
    return lane == 0 ? Start::bucket_stepped : Start::step_done;
  }
  Payload payload_;
};

// Rank 1 is late, so that the others' lanes have something to wait for.
void run(Engine& engine, Payload payload) {
  constexpr int kTensors = 3;
  std::vector<std::vector<float>> memory(kTensors, std::vector<float>(kElements));
  ModelSpec model;
  for (auto& each : memory)
    model.parameters.push_back({.name = "t" + std::to_string(model.parameters.size()),
                                .elements = kElements,
                                .data = std::as_writable_bytes(std::span(each)).data()});
  Session session(engine, {"rows", {}, "rows", std::make_shared<RowsThenColumns>(payload)},
                  std::move(model), {.measure_network = false, .timeout = Seconds(30)});
  const auto values = [&](int p) {
    const TensorView view = payload == Payload::gradient ? session.gradient(p) : session.weights(p);
    return std::span(reinterpret_cast<float*>(view.data), view.count);
  };
  for (int step = 0; step < 5; ++step) {
    if (engine.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    for (int p = kTensors; p-- > 0;) {
      std::ranges::fill(values(p), static_cast<float>(engine.rank() + step));
      (void)session.mark_gradient_ready(p);
    }
    for (int p = kTensors; p-- > 0;) {
      (void)session.before_step(session.bucket_of(p));
      session.stepped(session.bucket_of(p));
    }
    session.end_step();
    for (int p = 0; p < kTensors; ++p) {
      (void)session.wait_before_forward(session.bucket_of(p));
      const float mean = static_cast<float>(step) + 1.5F;
      EXPECT_EQ(std::ranges::count(values(p), mean), kElements) << "step " << step;
    }
  }
}

TEST(ChainsInFlight, RowsThenColumnsOnTwoLanesAreTheMeanOfAll) {
  for (const Payload payload : {Payload::gradient, Payload::weight})
    test::run_world(test::Kind::loopback, kWorkers, [&](Engine& engine) { run(engine, payload); });
}

}  // namespace
}  // namespace riffle
