#include "riffle/session.h"

#include "riffle/error.h"
#include "runtime/state.h"

namespace riffle {

Session::Session(Engine& engine, NamedStrategy strategy, ModelSpec model, SessionOptions options)
    : state_(std::make_unique<State>(engine, std::move(strategy), std::move(model),
                                     std::move(options))) {}
Session::~Session() = default;

Rank Session::rank() const {
  return state_->engine.rank();
}
const World& Session::world() const {
  return state_->agreed.world;
}
const NamedStrategy& Session::strategy() const {
  return state_->strategy;
}
Step Session::step() const {
  return state_->step;
}

const BucketPlan& Session::buckets() const {
  return state_->layout.buckets;
}
const Trace& Session::trace() const {
  return state_->agreed.trace;
}
int Session::bucket_of(int parameter) const {
  state_->check_parameter(parameter);
  return state_->layout.bucket_of[parameter];
}
std::vector<int> Session::parameters_of(int bucket) const {
  state_->check_bucket(bucket);
  const Bucket& of = state_->layout.buckets[bucket];
  std::vector<int> parameters;
  for (int p = of.first; p <= of.last; ++p) parameters.push_back(p);
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
bool Session::steps_per_bucket() const {
  return state_->per_bucket;
}
Elements Session::gradient(int parameter) const {
  state_->check_parameter(parameter);
  return state_->gradient(parameter);
}
Elements Session::weights(int parameter) const {
  state_->check_parameter(parameter);
  return state_->weights(parameter);
}
Elements Session::buffer(int index) const {
  if (index < 0 || index >= static_cast<int>(state_->model.buffers.size()))
    usage_error("buffer {}: there are {}", index, state_->model.buffers.size());
  return state_->buffer(index);
}

bool Session::needed(int bucket) {
  return state_->needed(bucket);
}
std::optional<int> Session::ready(int parameter) {
  return state_->ready(parameter);
}
void Session::backward_done() {
  state_->backward_done();
}
bool Session::before_step(int bucket) {
  return state_->before_step(bucket);
}
void Session::stepped(int bucket) {
  state_->stepped(bucket);
}
void Session::end_step() {
  state_->end_step();
}

void Session::set_sync(bool sync) {
  const std::scoped_lock lock(state_->mutex);
  state_->sync = sync;
}
bool Session::sync() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->sync;
}
bool Session::used(int parameter) const {
  return state_->used(parameter);
}
void Session::set_state(int parameter, std::vector<Elements> tensors) {
  state_->check_parameter(parameter);
  state_->optimizer_state[parameter] = std::move(tensors);
}
double Session::gradient_norm() {
  return state_->gradient_norm();
}
void Session::scale_gradients(double factor) {
  state_->scale_gradients(factor);
}

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
  state_->control.broadcast(bytes);
}
void Session::average(std::span<double> values) {
  state_->control.all_reduce(values, Reduction::mean);
}
std::vector<std::byte> Session::save() {
  return state_->save();
}
bool Session::relayout() {
  return state_->relayout();
}

SessionStats Session::stats() const {
  return state_->recorder.stats();
}
Timeline Session::timeline() const {
  return state_->recorder.timeline();
}
const std::vector<Sensed>& Session::sensed() const {
  return state_->sensed;
}
std::string Session::describe() const {
  return state_->describe();
}

}  // namespace riffle
