#include "riffle/session.h"

#include "riffle/error.h"
#include "runtime/engine_exchanger.h"
#include "runtime/state.h"

namespace riffle {

Session::Session(Engine& engine, NamedStrategy strategy, ModelSpec model, SessionOptions options)
    : Session(
          std::make_unique<runtime::EngineExchanger>(engine, options.collectives, options.timeout),
          std::move(strategy), std::move(model), options) {}
Session::Session(std::unique_ptr<runtime::Exchanger> exchanger, NamedStrategy strategy,
                 ModelSpec model, SessionOptions options)
    : state_(std::make_unique<State>(std::move(exchanger), std::move(strategy), std::move(model),
                                     std::move(options))) {}
Session::~Session() = default;

Rank Session::rank() const {
  return state_->exchanger->rank();
}
const World& Session::world() const {
  return state_->agreed.world;
}
const NamedStrategy& Session::strategy() const {
  return state_->running.strategy;
}
Step Session::step() const {
  return state_->steps.machine().step();
}

// ---- layout

const BucketPlan& Session::buckets() const {
  return state_->values.layout().buckets;
}
Trace Session::trace() const {
  return state_->trace();
}
int Session::bucket_of(int parameter) const {
  return state_->values.layout().bucket_of[state_->checked(parameter)];
}
std::vector<int> Session::parameters_of(int bucket) const {
  const BucketPlan& all = buckets();
  if (bucket < 0 || bucket >= static_cast<int>(all.size()))
    usage_error("bucket {}: there are {}", bucket, all.size());
  std::vector<int> parameters;
  for (int p = all[bucket].first; p <= all[bucket].last; ++p) parameters.push_back(p);
  return parameters;
}
bool Session::keeps_gradients() const {
  return state_->needs.gradients;
}
bool Session::keeps_weights() const {
  return state_->needs.weights;
}
bool Session::keeps_state() const {
  return state_->needs.state;
}
bool Session::needs_ready() const {
  return state_->needs.ready || state_->needs.per_bucket || state_->options.profile;
}
bool Session::waits_in_forward() const {
  return state_->needs.forward;
}
TensorView Session::gradient(int parameter) const {
  return state_->values.gradient(state_->checked(parameter));
}
TensorView Session::weights(int parameter) const {
  return state_->values.weights(state_->checked(parameter));
}
TensorView Session::buffer(int index) const {
  if (index < 0 || index >= static_cast<int>(state_->model.buffers.size()))
    usage_error("buffer {}: there are {}", index, state_->model.buffers.size());
  return state_->values.buffer(index);
}

// ---- one step

bool Session::wait_before_forward(int bucket) {
  return state_->steps.before_forward(bucket);
}
std::optional<int> Session::mark_gradient_ready(int parameter) {
  return state_->steps.mark_gradient_ready(state_->checked(parameter),
                                           state_->model.parameters[parameter].name);
}
void Session::backward_done() {
  state_->steps.backward_done();
}
bool Session::before_step(int bucket) {
  return state_->steps.before_step(bucket);
}
void Session::stepped(int bucket) {
  state_->steps.stepped(bucket);
}
void Session::end_step() {
  state_->end_step();
}

bool Session::profiles() const {
  return state_->steps.profile().is_wanted();
}
void Session::begin_forward() {
  state_->steps.profile().begin_forward();
}
void Session::forward_done(int parameter) {
  state_->steps.profile().forward_done(state_->checked(parameter));
}
void Session::end_forward() {
  state_->steps.profile().end_forward();
}
void Session::optimizer_took(Seconds time) {
  state_->steps.profile().optimizer(time);
}

bool Session::updates_in_backward() const {
  return state_->overlap.updates_in_backward() && state_->steps.machine().updates_per_bucket();
}
bool Session::postpones() const {
  return state_->postpones();
}
bool Session::watches() const {
  return state_->overlap.watches();
}
bool Session::compares() const {
  return state_->overlap.compares();
}
std::string Session::begin_update(std::string_view changed) {
  return state_->overlap.begin_step(changed);
}
void Session::begin_clipping() {
  bool updated = false;
  for (int b = 0; b < state_->steps.machine().buckets(); ++b) updated |= is_stepped(b);
  state_->overlap.clip(updated);
}
bool Session::is_stepped(int bucket) const {
  return state_->steps.machine().is_stepped(bucket);
}
void Session::set_sync(bool sync) {
  state_->steps.set_sync(sync);
}
bool Session::sync() const {
  return state_->steps.sync();
}
bool Session::used(int parameter) const {
  return state_->steps.used(state_->checked(parameter));
}
void Session::set_state(int parameter, std::vector<TensorView> tensors) {
  state_->values.set_state(state_->checked(parameter), std::move(tensors));
}
double Session::gradient_norm() {
  return state_->gradient_norm();
}
void Session::scale_gradients(double factor) {
  state_->scale_gradients(factor);
}

// ---- the whole model

void Session::finish() {
  state_->finish();
}
void Session::averaged(std::span<std::byte* const> into) {
  state_->averaged(into);
}
double Session::consensus_distance() {
  return state_->consensus_distance();
}
void Session::broadcast(std::span<std::byte> bytes) {
  state_->exchanger->broadcast(bytes);
}
void Session::average(std::span<double> values) {
  state_->exchanger->all_reduce(values, Reduction::mean);
}
std::vector<std::byte> Session::save() {
  return state_->save();
}
bool Session::relayout() {
  return state_->relayout();
}

// ---- what happened

SessionStats Session::stats() const {
  return state_->recorder.stats();
}
Timeline Session::timeline() const {
  return state_->recorder.timeline();
}
Seconds Session::timeline_begin() const {
  return state_->recorder.begin().time_since_epoch();
}
std::optional<Plan> Session::plan() const {
  return state_->measured_plan();
}
const std::vector<Sensed>& Session::sensed() const {
  return state_->sensed;
}

}  // namespace riffle
