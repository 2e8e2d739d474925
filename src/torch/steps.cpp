#include "torch/steps.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/nn/utils/clip_grad.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "riffle/error.h"
#include "torch/tensors.h"

namespace riffle::adapter {

Steps::Steps(Session& session, Model& model, Optimizers& optimizers, WeightAverage* average,
             bool lazy_forward, std::function<void(const std::string&)> log)
    : session_(session),
      model_(model),
      optimizers_(optimizers),
      average_(average),
      lazy_forward_(lazy_forward),
      log_(std::move(log)),
      reported_(model.parameters().size()),
      clock_(session, model.trained()),
      hooks_(model.trained(), [this](int p) { on_gradient(p); }) {
  share_state();  // a resumed session may merge it before the first update
  model_.bind(session_);
}

Steps::~Steps() {
  model_.unbind(session_);
}

// ---- backward

void Steps::on_gradient(int parameter) {
  if (model_.gradient(parameter).layout() != at::kStrided)
    usage_error(
        "{}: has a sparse gradient, which no strategy can average in place; use a dense one "
        "(sparse=false)",
        model_.parameters()[parameter].name);
  clock_.end_forward();
  if (!session_.sync() || !session_.needs_ready()) return;
  if (!in_backward_) begin_backward();
  report(parameter);
}

void Steps::begin_backward() {
  if (pending_) {
    // The weights that forward has used just now would have had to be merged before.
    if (!has_begun_update() && session_.keeps_weights() && session_.waits_in_forward())
      usage_error(
          "backward was not followed by step(): accumulate under no_sync(), or call skip_step() "
          "where there is to be no update");
    skip_step();
  }
  in_backward_ = true;
  torch::autograd::Engine::get_default_engine().queue_callback([this] { end_backward(); });
}

void Steps::report(int parameter) {
  model_.adopt(parameter, session_.postpones());
  reported_[parameter] = 1;
  const std::optional<int> bucket = session_.mark_gradient_ready(parameter);
  if (!bucket || !session_.updates_in_backward() || !session_.before_step(*bucket)) return;
  if (rates_.empty()) rates_ = optimizers_.rates();
  model_.show(session_.parameters_of(*bucket), session_);
  update({*bucket});
}

// Gradients of earlier backwards that only accumulated count too. From here on the loop sees what
// the update will use.
void Steps::end_backward() {
  in_backward_ = false;
  if (lazy_forward_) settle();  // buckets that this forward has not used
  pending_ = true;
  for (int p = static_cast<int>(reported_.size()); p-- > 0;)
    if (!reported_[p] && model_.gradient(p).defined()) report(p);
  session_.backward_done();
  if (session_.keeps_gradients() && !session_.postpones())
    for (const Bucket& bucket : session_.buckets()) {
      (void)session_.before_step(bucket.id);
      model_.show(session_.parameters_of(bucket.id), session_);
    }
  if (session_.watches()) watch_.mark(gradients(), session_.compares());
}

// ---- the loop's calls

void Steps::step() {
  if (!pending_) end_backward();
  check_rates();
  if (const std::string line = session_.begin_update(changed()); !line.empty()) log_(line);
  std::vector<int> now;
  std::vector<int> later;
  for (const Bucket& bucket : session_.buckets())
    if (!session_.is_stepped(bucket.id))
      (session_.before_step(bucket.id) ? now : later).push_back(bucket.id);
  for (const int bucket : now)
    if (session_.postpones()) model_.show(session_.parameters_of(bucket), session_);
  update(now);
  if (!later.empty()) postponed_ = optimizers_.hyperparameters();
  for (const int bucket : later)
    for (const int p : session_.parameters_of(bucket)) model_.gradient(p).reset();
  end_step();
}

void Steps::skip_step() {
  if (session_.postpones() || has_begun_update())
    usage_error(
        "backward was not followed by step(), but its exchange or update has begun: accumulate "
        "under no_sync(), or set TorchOptions::overlap to false");
  if (!pending_) end_backward();
  model_.release();  // the next backward may go on from them
  end_step();
}

void Steps::end_step() {
  model_.check_in_place(session_);
  session_.end_step();
  pending_ = in_backward_ = false;
  std::ranges::fill(reported_, 0);
  watch_.clear();
  rates_.clear();
  if (!session_.profiles()) clock_.stop();
  if (session_.relayout()) {
    model_.bind(session_);
    share_state();
  }
  if (!lazy_forward_ || average_ != nullptr) settle();
  if (average_ != nullptr) average_->sample();
}

double Steps::clip(double max_norm) {
  if (!pending_) end_backward();
  session_.begin_clipping();
  if (!session_.keeps_gradients())
    return torch::nn::utils::clip_grad_norm_(model_.trained(), max_norm);
  const bool untouched = changed().empty();
  // Gradients that the loop has replaced; what travels is not replaced any more.
  for (std::size_t p = 0; !session_.postpones() && p < reported_.size(); ++p)
    model_.adopt(p, false);
  const double norm = session_.gradient_norm();
  const double factor = max_norm / (norm + 1e-6);
  if (factor < 1) session_.scale_gradients(factor);
  if (session_.watches() && untouched) watch_.mark(gradients(), session_.compares());
  return norm;
}

// ---- updates

void Steps::update(const std::vector<int>& buckets, const Hyperparameters* of) {
  std::vector<int> parameters;
  for (const int bucket : buckets)
    for (const int p : session_.parameters_of(bucket)) parameters.push_back(p);
  const auto begin = Clock::now();
  optimizers_.step(parameters, of);
  session_.optimizer_took(Clock::now() - begin);
  share_state(parameters);
  for (const int bucket : buckets) session_.stepped(bucket);
}

void Steps::share_state(const std::vector<int>& parameters) {
  if (!session_.keeps_state()) return;
  for (const int p : parameters) {
    const Named& parameter = model_.parameters()[p];
    std::vector<TensorView> state;
    for (const at::Tensor& tensor : optimizers_.state(parameter.tensor))
      if (is_float(tensor)) state.push_back(tensor_view(tensor, parameter.name));
    session_.set_state(p, std::move(state));
  }
}

void Steps::share_state() {
  std::vector<int> all(model_.parameters().size());
  std::iota(all.begin(), all.end(), 0);
  share_state(all);
}

void Steps::wait_before_forward(int bucket) {
  if (!session_.wait_before_forward(bucket)) return;
  const std::vector<int> parameters = session_.parameters_of(bucket);
  model_.show(parameters, session_);
  update({bucket}, &postponed_);
  for (const int p : parameters) model_.gradient(p).reset();
}

void Steps::settle() {
  for (int bucket = static_cast<int>(session_.buckets().size()); bucket-- > 0;)
    wait_before_forward(bucket);
}

void Steps::wait_before_forward(torch::nn::Module& module) {
  if (pending_ && at::GradMode::is_enabled()) skip_step();
  std::unordered_set<const void*> wanted;
  for (const at::Tensor& tensor : module.parameters()) wanted.insert(tensor.unsafeGetTensorImpl());
  for (std::size_t p = 0; p < model_.parameters().size(); ++p)
    if (wanted.contains(model_.parameters()[p].tensor.unsafeGetTensorImpl()))
      wait_before_forward(session_.bucket_of(static_cast<int>(p)));
}

// ---- what the loop did

std::vector<at::Tensor> Steps::gradients() const {
  std::vector<at::Tensor> all;
  for (std::size_t p = 0; p < reported_.size(); ++p) all.push_back(model_.gradient(p));
  return all;
}

std::string Steps::changed() const {
  const auto found = watch_.changed(gradients());
  return found ? model_.parameters()[*found].name : std::string();
}

void Steps::check_rates() {
  if (!rates_.empty() && rates_ != optimizers_.rates())
    usage_error(
        "a learning rate was changed after backward, when buckets had been updated with it "
        "already: change it before backward, or set TorchOptions::overlap to false");
}

bool Steps::has_begun_update() const {
  return std::ranges::any_of(session_.buckets(),
                             [&](const Bucket& bucket) { return session_.is_stepped(bucket.id); });
}

}  // namespace riffle::adapter
