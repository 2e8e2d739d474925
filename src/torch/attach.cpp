#include <fmt/format.h>
#include <torch/nn/utils/clip_grad.h>

#include <algorithm>
#include <cstdio>
#include <unordered_set>

#include "riffle/error.h"
#include "riffle/torch.h"
#include "torch/hooks.h"
#include "torch/optimizers.h"
#include "torch/tensors.h"

namespace riffle {
namespace {

struct Named {
  std::string name;
  at::Tensor tensor;
};

// A tensor that occurs under several names is one.
template <typename Items>
std::vector<Named> distinct(const Items& items) {
  std::vector<Named> all;
  std::unordered_set<const void*> seen;
  for (const auto& item : items)
    if (item.value().defined() && seen.insert(item.value().unsafeGetTensorImpl()).second)
      all.push_back({item.key(), item.value()});
  return all;
}

TensorSpec spec_of(const Named& named) {
  // Strided views are made dense once; the model keeps its tensor.
  if (!adapter::is_dense(named.tensor)) {
    at::Tensor tensor = named.tensor;
    tensor.set_data(tensor.detach().contiguous());
  }
  const Elements memory = adapter::elements_of(named.tensor, named.name);
  return {named.name, named.tensor.numel(), memory.dtype, memory.data};
}

}  // namespace

class TorchSession::State {
 public:
  State(Engine& engine, const std::string& strategy, torch::nn::Module& model,
        std::vector<torch::optim::Optimizer*> with, TorchOptions given);
  ~State();

  void step();
  double clip(double max_norm);
  void needed(torch::nn::Module& module);
  std::vector<std::pair<std::string, at::Tensor>> averaged();
  void settle();

  TorchOptions options;
  std::vector<Named> parameters;
  std::vector<Named> buffers;  // of float types
  adapter::Optimizers optimizers;
  std::unique_ptr<Session> session;

 private:
  [[nodiscard]] std::vector<at::Tensor> tensors() const;
  void bind();
  void unbind();
  void on_gradient(int parameter);
  void begin_step();
  void check_unchanged(bool watching);
  // Gives the parameters of these buckets the exchanged gradients, and updates them.
  void update(const std::vector<int>& buckets);
  void adopt_gradients(int bucket);
  void needed(int bucket);
  void log(const std::string& line) const;

  enum class Overlap { watching, on, off };
  Overlap overlap_ = Overlap::watching;
  bool clips_ = false;
  bool begun_ = false;                   // of the step under way: nothing starts in hooks now
  std::vector<char> ready_;              // by parameter: kept for begin_step
  std::vector<std::uint32_t> versions_;  // of gradients, when their hooks ran
  std::vector<char> has_version_;
  std::vector<char> updated_;               // by bucket, in this step
  std::vector<at::Tensor> gradient_views_;  // by parameter; where the session keeps them
  std::unique_ptr<adapter::Hooks> hooks_;   // last: they call the rest
};

TorchSession::State::State(Engine& engine, const std::string& strategy, torch::nn::Module& model,
                           std::vector<torch::optim::Optimizer*> with, TorchOptions given)
    : options(std::move(given)),
      parameters([&] {
        auto all = distinct(model.named_parameters());
        std::erase_if(all, [](const Named& each) { return !each.tensor.requires_grad(); });
        return all;
      }()),
      optimizers(std::move(with), tensors()) {
  ModelSpec spec;
  for (const Named& each : parameters) spec.parameters.push_back(spec_of(each));
  std::vector<Named> others;  // frozen parameters and integers: rank 0's, and then left alone
  for (const Named& each : distinct(model.named_buffers()))
    (adapter::is_float(each.tensor) && each.tensor.numel() > 0 ? buffers : others).push_back(each);
  for (const Named& each : distinct(model.named_parameters()))
    if (!each.tensor.requires_grad()) others.push_back(each);
  for (const Named& each : buffers) spec.buffers.push_back(spec_of(each));
  if (options.log && !options.session.log) options.session.log = options.log;
  const bool broadcasts = options.session.broadcast && options.session.resume.empty();
  session = std::make_unique<Session>(engine, StrategyTable::builtin().make(strategy),
                                      std::move(spec), options.session);
  for (const Named& each : others) {
    if (!broadcasts || each.tensor.numel() == 0) continue;
    if (!adapter::is_dense(each.tensor)) usage_error("{}: is no dense tensor", each.name);
    session->broadcast(adapter::bytes_of(each.tensor));
  }
  ready_.assign(parameters.size(), 0);
  versions_.assign(parameters.size(), 0);
  has_version_.assign(parameters.size(), 0);
  bind();
  hooks_ = std::make_unique<adapter::Hooks>(tensors(), [this](int p) { on_gradient(p); });
}

TorchSession::State::~State() {
  hooks_.reset();
  unbind();
}

std::vector<at::Tensor> TorchSession::State::tensors() const {
  std::vector<at::Tensor> all;
  for (const Named& each : parameters) all.push_back(each.tensor);
  return all;
}

void TorchSession::State::log(const std::string& line) const {
  if (options.log) return options.log(line);
  if (session->rank() == 0) fmt::print(stderr, "riffle: {}\n", line);
}

// The model's tensors become views of the session's memory.
void TorchSession::State::bind() {
  updated_.assign(session->buckets().size(), 0);
  gradient_views_.clear();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    at::Tensor& tensor = parameters[p].tensor;
    const int index = static_cast<int>(p);
    if (session->keeps_weights())
      tensor.set_data(adapter::view_of(session->weights(index), tensor.detach()));
    if (!session->keeps_gradients()) continue;
    gradient_views_.push_back(adapter::view_of(session->gradient(index), tensor.detach()));
    if (tensor.grad().defined()) tensor.mutable_grad() = gradient_views_.back();
  }
  for (std::size_t i = 0; session->keeps_weights() && i < buffers.size(); ++i)
    buffers[i].tensor.set_data(
        adapter::view_of(session->buffer(static_cast<int>(i)), buffers[i].tensor.detach()));
}

// The memory goes with the session: what the model still needs is copied.
void TorchSession::State::unbind() {
  if (session == nullptr) return;
  const at::NoGradGuard guard;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    at::Tensor& tensor = parameters[p].tensor;
    if (session->keeps_weights()) tensor.set_data(tensor.detach().clone());
    if (session->keeps_gradients() && tensor.grad().defined())
      tensor.mutable_grad() = tensor.grad().clone();
  }
  for (Named& each : buffers)
    if (session->keeps_weights()) each.tensor.set_data(each.tensor.detach().clone());
}

void TorchSession::State::on_gradient(int parameter) {
  const auto index = static_cast<std::size_t>(parameter);
  at::Tensor& tensor = parameters[index].tensor;
  at::Tensor& gradient = tensor.mutable_grad();
  if (gradient.layout() != at::kStrided)
    usage_error(
        "{}: has a sparse gradient, which no strategy can average in place; use a dense "
        "one (sparse=false)",
        parameters[index].name);
  if (begun_)
    usage_error("{}: its gradient came between clip_grad_norm_ and step", parameters[index].name);
  if (session->keeps_gradients() && !gradient.is_same(gradient_views_[index])) {
    const at::NoGradGuard guard;
    if (gradient.data_ptr() != gradient_views_[index].data_ptr())
      gradient_views_[index].copy_(gradient);
    gradient = gradient_views_[index];
  }
  versions_[index] = static_cast<std::uint32_t>(gradient._version());
  has_version_[index] = 1;
  if (session->sync() && overlap_ != Overlap::on) {
    ready_[index] = 1;
    return;
  }
  const std::optional<int> bucket = session->ready(parameter);
  if (!bucket || clips_ || !session->steps_per_bucket()) return;
  if (session->before_step(*bucket)) {
    update({*bucket});
    updated_[static_cast<std::size_t>(*bucket)] = 1;
  }
}

void TorchSession::State::check_unchanged(bool watching) {
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const at::Tensor& gradient = parameters[p].tensor.grad();
    if (!has_version_[p] || !gradient.defined()) continue;
    if (static_cast<std::uint32_t>(gradient._version()) == versions_[p]) continue;
    if (!watching)
      usage_error(
          "the gradient of {} was changed after backward, when its exchange was under way; "
          "clip with the session's clip_grad_norm_, or change gradients from the first "
          "step on",
          parameters[p].name);
    overlap_ = Overlap::off;
    log(
        fmt::format("the gradient of {} is changed between backward and step, so exchanges start "
                    "at step() and nothing hides under backward",
                    parameters[p].name));
    return;
  }
  if (watching) overlap_ = Overlap::on;
}

// All gradients are as the user wants them.
void TorchSession::State::begin_step() {
  if (begun_) return;
  begun_ = true;
  const bool started = overlap_ == Overlap::on;
  if (overlap_ != Overlap::off) check_unchanged(overlap_ == Overlap::watching);
  if (!started)
    for (std::size_t p = parameters.size(); p-- > 0;)
      if (ready_[p]) (void)session->ready(static_cast<int>(p));
  session->backward_done();
}

void TorchSession::State::adopt_gradients(int bucket) {
  if (!session->keeps_gradients()) return;
  for (const int p : session->parameters_of(bucket)) {
    at::Tensor& gradient = parameters[static_cast<std::size_t>(p)].tensor.mutable_grad();
    gradient = session->used(p) ? gradient_views_[static_cast<std::size_t>(p)] : at::Tensor();
  }
}

void TorchSession::State::update(const std::vector<int>& buckets) {
  if (buckets.empty()) return;
  std::vector<char> chosen(parameters.size(), 0);
  for (const int bucket : buckets) {
    adopt_gradients(bucket);
    for (const int p : session->parameters_of(bucket)) chosen[static_cast<std::size_t>(p)] = 1;
  }
  optimizers.step(chosen);
  for (std::size_t p = 0; session->keeps_state() && p < parameters.size(); ++p) {
    if (!chosen[p]) continue;
    std::vector<Elements> state;
    for (const at::Tensor& tensor : optimizers.state(parameters[p].tensor))
      if (adapter::is_float(tensor))
        state.push_back(adapter::elements_of(tensor, parameters[p].name));
    session->set_state(static_cast<int>(p), std::move(state));
  }
  for (const int bucket : buckets) session->stepped(bucket);
}

void TorchSession::State::step() {
  begin_step();
  std::vector<int> now;
  std::vector<int> later;
  for (const Bucket& bucket : session->buckets())
    if (!updated_[static_cast<std::size_t>(bucket.id)])
      (session->before_step(bucket.id) ? now : later).push_back(bucket.id);
  update(now);
  // What still travels is not the user's to set to zero.
  for (const int bucket : later)
    for (const int p : session->parameters_of(bucket))
      parameters[static_cast<std::size_t>(p)].tensor.mutable_grad() = at::Tensor();
  session->end_step();
  begun_ = false;
  std::ranges::fill(updated_, 0);
  std::ranges::fill(ready_, 0);
  std::ranges::fill(has_version_, 0);
  if (session->relayout()) bind();
  if (!options.lazy_forward) settle();
}

void TorchSession::State::needed(int bucket) {
  if (!session->needed(bucket)) return;
  std::vector<at::Tensor> now;  // what the user's loop has made of the gradients meanwhile
  for (const int p : session->parameters_of(bucket))
    now.push_back(parameters[static_cast<std::size_t>(p)].tensor.grad());
  update({bucket});
  std::size_t next = 0;
  for (const int p : session->parameters_of(bucket))
    parameters[static_cast<std::size_t>(p)].tensor.mutable_grad() = now[next++];
}

void TorchSession::State::settle() {
  for (int bucket = static_cast<int>(session->buckets().size()); bucket-- > 0;) needed(bucket);
}

void TorchSession::State::needed(torch::nn::Module& module) {
  std::unordered_set<const void*> wanted;
  for (const at::Tensor& tensor : module.parameters()) wanted.insert(tensor.unsafeGetTensorImpl());
  for (std::size_t p = 0; p < parameters.size(); ++p)
    if (wanted.contains(parameters[p].tensor.unsafeGetTensorImpl()))
      needed(session->bucket_of(static_cast<int>(p)));
}

double TorchSession::State::clip(double max_norm) {
  if (std::ranges::count(updated_, 1) > 0)
    usage_error(
        "clip_grad_norm_ came when backward had updated some buckets already; call it in "
        "the first step, too");
  clips_ = true;
  begin_step();
  if (!session->keeps_gradients()) return torch::nn::utils::clip_grad_norm_(tensors(), max_norm);
  const double norm = session->gradient_norm();
  const double factor = max_norm / (norm + 1e-6);
  if (factor < 1) session->scale_gradients(factor);
  return norm;
}

std::vector<std::pair<std::string, at::Tensor>> TorchSession::State::averaged() {
  settle();
  std::vector<std::pair<std::string, at::Tensor>> result;
  std::vector<std::byte*> into;
  for (const auto* all : {&parameters, &buffers})
    for (const Named& each : *all) {
      result.emplace_back(each.name, each.tensor.detach().clone());
      into.push_back(adapter::bytes_of(result.back().second).data());
    }
  session->averaged(into);
  return result;
}

TorchSession::TorchSession(std::unique_ptr<State> state) : state_(std::move(state)) {}
TorchSession::TorchSession(TorchSession&&) noexcept = default;
TorchSession& TorchSession::operator=(TorchSession&&) noexcept = default;
TorchSession::~TorchSession() = default;

void TorchSession::step() {
  state_->step();
}
double TorchSession::clip_grad_norm_(double max_norm) {
  return state_->clip(max_norm);
}
TorchSession::NoSync TorchSession::no_sync() {
  return NoSync(*state_->session);
}
void TorchSession::needed(torch::nn::Module& module) {
  state_->needed(module);
}
void TorchSession::finish() {
  state_->settle();
  state_->session->finish();
}
std::vector<std::pair<std::string, torch::Tensor>> TorchSession::averaged() {
  return state_->averaged();
}
double TorchSession::consensus_distance() {
  state_->settle();
  return state_->session->consensus_distance();
}
std::vector<std::byte> TorchSession::save() {
  state_->settle();
  return state_->session->save();
}
SessionStats TorchSession::stats() const {
  return state_->session->stats();
}
Session& TorchSession::session() {
  return *state_->session;
}

TorchSession attach(Engine& engine, const std::string& strategy, torch::nn::Module& model,
                    torch::optim::Optimizer& optimizer, TorchOptions options) {
  return attach(engine, strategy, model, std::vector<torch::optim::Optimizer*>{&optimizer},
                std::move(options));
}

TorchSession attach(Engine& engine, const std::string& strategy, torch::nn::Module& model,
                    std::vector<torch::optim::Optimizer*> optimizers, TorchOptions options) {
  return TorchSession(std::make_unique<TorchSession::State>(
      engine, strategy, model, std::move(optimizers), std::move(options)));
}

}  // namespace riffle
