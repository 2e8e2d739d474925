// Sessions whose values travel rounded: what program.h says of Wire, on real memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "codec/codec.h"
#include "riffle/random.h"
#include "riffle/session.h"
#include "support/workers.h"

namespace riffle {
namespace {

using test::Kind;
using test::run_world;
using Vector = std::vector<float>;

const std::vector<std::int64_t> kSizes{300, 17, 1, 700};
constexpr const char* kCluster = "racks:2x2,inner=20us/10Gbps,outer=200us/1Gbps";

// A worker that draws its weights towards a target of its own, by SGD in f32.
class Worker {
 public:
  Worker(Engine& engine, const std::string& spec, std::span<const std::byte> resume = {},
         Collectives* collectives = nullptr)
      : rank_(engine.rank()) {
    ModelSpec model;
    for (std::size_t p = 0; p < kSizes.size(); ++p) {
      own_.emplace_back(static_cast<std::size_t>(kSizes[p]), 0.5f);
      gradient_.emplace_back(static_cast<std::size_t>(kSizes[p]));
      model.parameters.push_back({"p" + std::to_string(p), kSizes[p], DType::f32,
                                  reinterpret_cast<std::byte*>(own_.back().data())});
    }
    SessionOptions options;
    options.cluster = parse_cluster(kCluster);
    options.measure_network = false;
    options.resume = resume;
    options.collectives = collectives;
    options.timeout = Seconds(60);
    options.sense = false;
    session = std::make_unique<Session>(engine, StrategyTable::builtin().make(spec),
                                        std::move(model), options);
  }

  [[nodiscard]] std::span<float> weights(int p) {
    auto& own = own_[static_cast<std::size_t>(p)];
    if (!session->keeps_weights()) return own;
    return {reinterpret_cast<float*>(session->weights(p).data), own.size()};
  }
  [[nodiscard]] Vector all() {
    Vector all;
    for (int p = 0; p < static_cast<int>(kSizes.size()); ++p)
      for (const float each : weights(p)) all.push_back(each);
    return all;
  }
  void set(const Vector& values) {
    std::size_t at = 0;
    for (int p = 0; p < static_cast<int>(kSizes.size()); ++p)
      for (float& each : weights(p)) each = values[at++];
  }

  void train(int steps, float rate = 0.1f) {
    for (int i = 0; i < steps; ++i) train_step(rate);
    forward(rate);
  }

  std::unique_ptr<Session> session;

 private:
  void update(int bucket, float rate) {
    for (const int p : session->parameters_of(bucket)) {
      const TensorView kept = session->gradient(p);
      const float* gradient = kept.data != nullptr ? reinterpret_cast<const float*>(kept.data)
                                                   : gradient_[static_cast<std::size_t>(p)].data();
      for (float& each : weights(p)) each -= rate * *gradient++;
    }
  }
  void forward(float rate) {
    for (int b = static_cast<int>(session->buckets().size()); b-- > 0;)
      if (session->wait_before_forward(b)) {
        update(b, rate);
        session->stepped(b);
      }
  }
  void train_step(float rate) {
    forward(rate);
    Random random(static_cast<std::uint64_t>(rank_) + 1,
                  static_cast<std::uint64_t>(session->step()));
    for (int p = static_cast<int>(kSizes.size()); p-- > 0;) {
      const TensorView kept = session->gradient(p);
      float* to = kept.data != nullptr ? reinterpret_cast<float*>(kept.data)
                                       : gradient_[static_cast<std::size_t>(p)].data();
      for (const float each : weights(p))
        *to++ = each - static_cast<float>(rank_) + 0.1f * static_cast<float>(random.normal());
      const auto bucket = session->mark_gradient_ready(p);
      if (!bucket || !session->updates_in_backward()) continue;
      if (session->before_step(*bucket)) update(*bucket, rate);
      session->stepped(*bucket);
    }
    session->backward_done();
    if (!session->updates_in_backward())
      for (const Bucket& bucket : session->buckets()) {
        if (!session->before_step(bucket.id)) continue;
        update(bucket.id, rate);
        session->stepped(bucket.id);
      }
    session->end_step();
  }

  Rank rank_;
  std::vector<Vector> own_;
  std::vector<Vector> gradient_;
};

const std::vector<std::string>& specs() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> list;
    const StrategyTable table = StrategyTable::builtin();
    for (const StrategyInfo& info : table.all())
      for (const char* wire : {"bf16", "int8"})
        if (info.name != "asp" && info.name != "ssp")  // refuse it: what is served is not rounded
          list.push_back(info.name + ":wire=" + wire);
    for (const char* more :
         {"wfbp:wire=f16", "sesgd:order=combine-then-adapt,wire=int8",
          "ds-sync:pattern=bottleneck,delay=3,bucket=layer,wire=int8",
          "dasgd:tau=4,delay=4,merge=mix,wire=int8", "diloco:tau=4,wire=int8",
          "diloco:tau=4,overlap=3,wire=int8", "diloco:tau=8,fragments=3,overlap=2,wire=int8",
          "noloco:tau=4,wire=int8", "local-sgd:tau=4,wire=f16", "wfbp:wire=int8,feedback=false",
          "sesgd:wire=int8,feedback=false"})
      list.emplace_back(more);
    return list;
  }();
  return all;
}

std::string plain(std::string name) {
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

class RoundedSession : public testing::TestWithParam<std::string> {};

TEST_P(RoundedSession, GoesOnBitForBitAfterAResume) {
  const std::string& spec = GetParam();
  run_world(Kind::loopback, 4, [&](Engine& engine) {
    Collectives collectives(engine);
    std::vector<std::byte> bytes;
    Vector x;
    Vector expected;
    {
      Worker worker(engine, spec, {}, &collectives);
      worker.train(9);
      bytes = worker.session->save();
      x = worker.all();
      worker.train(11);
      expected = worker.all();
    }
    Worker worker(engine, spec, bytes, &collectives);
    worker.set(x);
    worker.train(11);
    EXPECT_EQ(worker.all(), expected) << spec << " rank " << engine.rank();
  });
}

// The targets' mean is 1.5: rounding must neither keep workers from it nor apart.
TEST_P(RoundedSession, FindsTheMean) {
  const std::string& spec = GetParam();
  if (spec.find("diloco") != std::string::npos) GTEST_SKIP() << "needs longer runs";
  run_world(Kind::loopback, 4, [&](Engine& engine) {
    Worker worker(engine, spec);
    // The published interpolation gives up part of what was learned, so it takes longer; and so
    // does an outer momentum that has few steps.
    const auto is = [&](std::string_view word) { return spec.find(word) != std::string::npos; };
    worker.train(is("noloco") ? 820 : is("merge=mix") || is("slowmo") ? 400 : 120);
    const bool exact = StrategyTable::builtin().make(spec)->traits(worker.session->world()).exact;
    if (exact) {
      Vector first = worker.all();
      worker.session->broadcast(std::as_writable_bytes(std::span(first)));
      EXPECT_EQ(first, worker.all()) << spec;
    }
    worker.session->finish();
    double mean = 0;
    const Vector all = worker.all();
    for (const float each : all) mean += each / static_cast<double>(all.size());
    EXPECT_NEAR(mean, 1.5, 0.02) << spec;
  });
}

INSTANTIATE_TEST_SUITE_P(Strategies, RoundedSession, testing::ValuesIn(specs()),
                         [](const auto& each) { return plain(each.param); });

// Without updates groups only mix: the mean stays, and workers come together.
TEST(RoundedWeights, KeepTheirMean) {
  for (const std::string spec : {"sesgd:wire=int8", "gossip:wire=int8", "ds-sync:wire=bf16",
                                 "local-sgd:tau=1,wire=int8", "dasgd:tau=2,delay=1,wire=int8"})
    run_world(Kind::loopback, 4, [&](Engine& engine) {
      Worker worker(engine, spec);
      Vector start = worker.all();
      Random random(static_cast<std::uint64_t>(engine.rank()) + 5);
      for (float& each : start) each = static_cast<float>(random.normal());
      worker.set(start);
      const auto mean = [&] {
        std::vector<double> sums(start.size());
        const Vector now = worker.all();
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = now[i];
        worker.session->average(sums);
        return sums;
      };
      const auto before = mean();
      worker.train(400, 0);
      if (spec.find("dasgd") == std::string::npos) {
        const auto after = mean();
        for (std::size_t i = 0; i < before.size(); ++i)
          ASSERT_NEAR(after[i], before[i], 2e-5) << spec << ", value " << i;
      }
      EXPECT_LT(worker.session->consensus_distance(), 0.1) << spec;
    });
}

}  // namespace
}  // namespace riffle
