// Training a libtorch model on many workers. The loop stays as it is but for two lines:
//
//   auto session = riffle::attach(engine, "mg-wfbp", *model, optimizer);
//   for (auto& batch : data) {
//     optimizer.zero_grad();
//     loss(model->forward(batch.x), batch.y).backward();
//     session.step();                                     // instead of optimizer.step()
//   }
//   session.finish();                                     // one exact average over all workers
//
// Parameters and buffers start as rank 0's. Gradients or weights, whatever the strategy exchanges,
// live in the session's buckets while it lasts; when it ends they are the model's own again.
//
// Exchanges overlap with backward through gradient hooks. After backward the loop sees the
// gradients that the update will use: where a strategy averages gradients, the averages, so that
// torch's own clipping does what it does under DDP. Two things need gradients that are left alone
// between backward and step: strategies that mix updated weights update bucket by bucket under
// backward, and strategies whose gradients are whole only in the next forward leave their update to
// it. The first steps do without and watch: a loop that changes gradients (clips, scales) keeps
// both off, which the log says once; one that begins to do so later gets an error. clip_grad_norm_
// of the session is right everywhere. Learning rates are free to change from step to step, before
// backward.
//
// Refused, with the reason: sparse gradients, tensors that are not in host memory or of no float
// type of ours, optimizers that need a closure, a model without trainable parameters.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "riffle/session.h"

namespace riffle {

struct TorchOptions {
  SessionOptions session = {};
  // True: the loop calls wait_before_forward(module) before it uses a module, so that what is due
  // then hides under the layers before it. False: step() waits for it.
  bool lazy_forward = false;
  // False: no update under backward and none left to the next forward, whatever the loop does.
  bool overlap = true;
  // Keep the average of the weights over steps and workers, see swa(); over those from step
  // `swa_from` on, steps before a checkpoint that has the average counted. Each step then waits for
  // what is due before forward.
  bool swa = false;
  std::int64_t swa_from = 0;
  // What a person should know, a line each; stderr by default.
  std::function<void(const std::string&)> log = {};
};

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

class TorchSession {
 public:
  class State;
  explicit TorchSession(std::unique_ptr<State> state);
  TorchSession(TorchSession&&) noexcept;
  TorchSession& operator=(TorchSession&&) noexcept;
  ~TorchSession();

  // Updates the model, in place of optimizer.step(). Throws what failed in the background.
  void step();
  // Ends a step without an update of this worker's, after an overflow for example. UsageError where
  // an update has begun under backward or is left to the next forward.
  void skip_step();
  // Clips the gradient of the whole model as the update will see it, by its 2-norm, which it gives
  // back. Between backward and step.
  double clip_grad_norm_(double max_norm);

  // Gradients are only accumulated while it lives.
  class NoSync {
   public:
    explicit NoSync(Session& session) : session_(&session), before_(session.sync()) {
      session_->set_sync(false);
    }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;
    ~NoSync() { session_->set_sync(before_); }

   private:
    Session* session_;
    bool before_;
  };
  [[nodiscard]] NoSync no_sync();

  // With lazy_forward: before the parameters of a module are used.
  void wait_before_forward(torch::nn::Module& module);

  // All ranks make these calls, between two steps.
  void finish();
  // Parameters and float buffers by name, averaged; copies.
  [[nodiscard]] NamedTensors averaged();
  // The same over steps too (TorchOptions::swa). Averages of BatchNorm's statistics are not those
  // of averaged weights: run batches through a model that has these in training mode before you
  // evaluate it, which is not done here.
  [[nodiscard]] NamedTensors swa();
  double consensus_distance();
  // For TorchOptions::session.resume, with the weights and the optimizer's state saved as always
  // and loaded before attach.
  [[nodiscard]] std::vector<std::byte> save();

  [[nodiscard]] SessionStats stats() const;
  // As Session has them: what computing takes, and with "auto" what was planned on it.
  [[nodiscard]] Trace trace() const;
  [[nodiscard]] std::optional<Plan> plan() const;
  [[nodiscard]] Session& session();

 private:
  std::unique_ptr<State> state_;
};

// `strategy`: as on the command line, "sesgd:group=4", or "auto" (choose_strategy in
// riffle/automatic.h), which plans on what the first steps show, unless SessionOptions::plan has
// one that was made before (load_plan). Engine, model and optimizers must outlive the session. For
// several sessions on one engine, one after the other, give them its collectives
// (SessionOptions::collectives).
[[nodiscard]] TorchSession attach(Engine& engine, const std::string& strategy,
                                  torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                                  TorchOptions options = {});
[[nodiscard]] TorchSession attach(Engine& engine, const std::string& strategy,
                                  torch::nn::Module& model,
                                  std::vector<torch::optim::Optimizer*> optimizers,
                                  TorchOptions options = {});

}  // namespace riffle
