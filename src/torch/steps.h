// The points of a step on torch: hooks turn an ordinary loop into a distributed one. The session
// (riffle/session.h) runs the strategy's programs and says what may overlap with backward; this
// tells it which point has been reached, and moves gradients.
#pragma once

#include <functional>
#include <string>

#include "torch/forward_clock.h"
#include "torch/hooks.h"
#include "torch/optimizers.h"
#include "torch/watch.h"
#include "torch/weight_average.h"

namespace riffle::adapter {

class Steps {
 public:
  // All must outlive it; `average` may be none. `lazy_forward`: the loop calls
  // wait_before_forward(); else a step settles.
  Steps(Session& session, Model& model, Optimizers& optimizers, WeightAverage* average,
        bool lazy_forward, std::function<void(const std::string&)> log);
  ~Steps();
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  // As riffle/torch.h describes them.
  void step();
  void skip_step();
  double clip(double max_norm);
  void wait_before_forward(torch::nn::Module& module);
  // All that is due before the next forward has happened.
  void settle();

 private:
  void on_gradient(int parameter);
  void begin_backward();
  void end_backward();
  // The gradient is complete: the session may exchange it.
  void report(int parameter);
  void update(const std::vector<int>& buckets, const Hyperparameters* of = nullptr);
  void share_state(const std::vector<int>& parameters);
  void share_state();
  void end_step();
  void wait_before_forward(int bucket);

  [[nodiscard]] std::vector<at::Tensor> gradients() const;
  // The name of a gradient that is not as backward left it; empty where all are.
  [[nodiscard]] std::string changed() const;
  void check_rates();
  [[nodiscard]] bool has_begun_update() const;

  Session& session_;
  Model& model_;
  Optimizers& optimizers_;
  WeightAverage* average_;
  bool lazy_forward_;
  std::function<void(const std::string&)> log_;

  bool in_backward_ = false;
  bool pending_ = false;  // a backward has ended, its step has not
  std::vector<char> reported_;
  GradientWatch watch_;
  std::vector<double> rates_;  // that updates under backward were made with
  Hyperparameters postponed_;  // of updates that are left to the next forward
  ForwardClock clock_;
  Hooks hooks_;  // last: they call the rest
};

}  // namespace riffle::adapter
