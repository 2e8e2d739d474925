// What a session of libtorch measures, and what auto makes of it.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <thread>

#include "riffle/make_engine.h"
#include "riffle/torch.h"

namespace riffle {
namespace {

// Milliseconds, no two alike, so that a time in a wrong place shows.
const std::vector<int> kForward{6, 18, 12};
const std::vector<int> kBackward{30, 10, 20};

void sleep(std::int64_t milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// Takes its time in forward or in backward.
struct Pause : torch::autograd::Function<Pause> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               std::int64_t forward, std::int64_t backward) {
    sleep(forward);
    context->saved_data["backward"] = backward;
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    sleep(context->saved_data["backward"].toInt());
    return {gradients[0], torch::Tensor(), torch::Tensor()};
  }
};

struct Slow : torch::nn::Module {
  Slow() {
    for (std::size_t i = 0; i < kForward.size(); ++i)
      layers.push_back(
          register_module("layer" + std::to_string(i),
                          torch::nn::Linear(torch::nn::LinearOptions(4, 4).bias(false))));
  }
  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      // The first forward begins with the first operation that is given a parameter.
      if (i > 0) x = Pause::apply(x, kForward[i], 0);
      x = Pause::apply(layers[i]->forward(x), 0, kBackward[i]);
    }
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};

TEST(TorchProfile, EachLayerHasItsOwnTimes) {
  LoopbackWorld world(1);
  Slow model;
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01));
  TorchOptions options;
  options.session.profile = ProfileRequest{.file = "", .steps = 5};
  TorchSession session = attach(world.engine(0), "auto", model, optimizer, options);
  for (int step = 0; step < 7; ++step) {
    optimizer.zero_grad();
    model.forward(torch::rand({2, 4})).sum().backward();
    session.step();
  }
  const Trace trace = session.trace();
  ASSERT_EQ(trace.layers.size(), kForward.size());
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    const Layer& layer = trace.layers[i];
    EXPECT_EQ(layer.elements, 16);
    EXPECT_GE(layer.forward, milliseconds(i > 0 ? kForward[i] : 0) * 0.99);
    EXPECT_LT(layer.forward, milliseconds(i > 0 ? kForward[i] + 3 : 3));
    EXPECT_GE(layer.backward, milliseconds(kBackward[i]) * 0.99);
    EXPECT_LT(layer.backward, milliseconds(kBackward[i] + 3));
  }
  EXPECT_GT(trace.optimizer_step, Seconds{});
  EXPECT_NE(trace.source.find("medians of 5 steps"), std::string::npos) << trace.source;
}

TEST(TorchProfile, AutoTakesAPlan) {
  const StrategyTable table = StrategyTable::builtin();
  Trace trace{
      .model = "any", .layers = {{"l", 48, milliseconds(1), milliseconds(1)}}, .source = ""};
  const Plan plan = make_plan(trace, parse_cluster("flat:2,latency=1ms,bandwidth=1Mbps"), table,
                              {"wfbp", "diloco"});
  LoopbackWorld world(2);
  std::vector<std::thread> ranks;
  for (Rank rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      Slow model;
      torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01));
      TorchOptions options;
      options.session.plan = plan;
      TorchSession session = attach(world.engine(rank), "auto", model, optimizer, options);
      EXPECT_EQ(session.session().strategy().spec, "wfbp");
      ASSERT_TRUE(session.plan());
      EXPECT_EQ(session.plan()->candidates.front().spec, "diloco");
    });
  for (std::thread& rank : ranks) rank.join();
}

}  // namespace
}  // namespace riffle
