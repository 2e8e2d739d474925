#include "runtime/toy.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include "riffle/random.h"

namespace riffle::test {
namespace {

constexpr int kRows = 3;

std::vector<std::size_t> begins() {
  std::vector<std::size_t> begin;
  std::size_t next = 0;
  for (const std::int64_t size : kSizes) {
    begin.push_back(next);
    next += static_cast<std::size_t>(size);
  }
  return begin;
}

}  // namespace

std::size_t toy_elements() {
  return static_cast<std::size_t>(std::accumulate(kSizes.begin(), kSizes.end(), std::int64_t{0}));
}

Vector toy_start(std::uint64_t seed) {
  Random random(seed);
  Vector x(toy_elements());
  for (double& value : x) value = random.normal();
  return x;
}

Vector toy_gradient(const Vector& x, Rank rank, Step step) {
  Random random(4711 + static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step));
  Vector gradient(x.size());
  Vector row(x.size());
  for (int r = 0; r < kRows; ++r) {
    double product = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      row[i] = random.normal() / std::sqrt(static_cast<double>(x.size()));
      product += row[i] * x[i];
    }
    const double error = std::tanh(product) - random.uniform(-0.5, 0.5);
    for (std::size_t i = 0; i < x.size(); ++i)
      gradient[i] += error * row[i] * (1 - std::tanh(product) * std::tanh(product)) / kRows;
  }
  for (std::size_t i = 0; i < x.size(); ++i) gradient[i] += 0.01 * x[i];
  return gradient;
}

void toy_update(Vector& x, Vector& v, const Vector& gradient, std::size_t begin,
                std::size_t count) {
  for (std::size_t i = begin; i < begin + count; ++i) {
    v[i] = kMomentum * v[i] + gradient[i];
    x[i] -= kRate * v[i];
  }
}

Toy::Toy(Engine& engine, const std::string& strategy, const ToyOptions& options)
    : velocity(toy_elements()), options_(options), begin_(begins()) {
  ModelSpec model;
  const Vector start = toy_start(options.start + (options.resume.empty() ? engine.rank() : 0));
  for (std::size_t p = 0; p < kSizes.size(); ++p) {
    const auto size = static_cast<std::size_t>(kSizes[p]);
    own_.emplace_back(start.begin() + static_cast<std::ptrdiff_t>(begin_[p]),
                      start.begin() + static_cast<std::ptrdiff_t>(begin_[p] + size));
    gradient_.emplace_back(size);
    model.parameters.push_back({"p" + std::to_string(p), kSizes[p], DType::f64,
                                reinterpret_cast<std::byte*>(own_.back().data())});
  }
  SessionOptions with;
  with.cluster = options.cluster;
  with.measure_network = options.measure;
  with.resume = options.resume;
  with.collectives = options.collectives;
  with.record = options.record;
  with.sense = options.sense;
  with.sense_window = options.sense_window;
  with.timeout = Seconds(20);
  const ChosenStrategy chosen = choose_strategy(strategy);
  with.automatic = chosen.automatic;
  with.plan = options.plan;
  with.log = [](const std::string&) {};
  session_ = std::make_unique<Session>(engine, chosen.strategy, std::move(model), std::move(with));
  if (!options.mixes_state) return;
  for (std::size_t p = 0; p < kSizes.size(); ++p)
    session_->set_state(
        static_cast<int>(p),
        {tensor_view(std::span(velocity).subspan(begin_[p], static_cast<std::size_t>(kSizes[p])))});
}

double* Toy::weight(int parameter) const {
  if (session_->keeps_weights())
    return reinterpret_cast<double*>(session_->weights(parameter).data);
  return const_cast<double*>(own_[static_cast<std::size_t>(parameter)].data());
}

Vector Toy::weights() const {
  Vector x;
  for (std::size_t p = 0; p < kSizes.size(); ++p) {
    const double* from = weight(static_cast<int>(p));
    x.insert(x.end(), from, from + kSizes[p]);
  }
  return x;
}

void Toy::set_weights(const Vector& x) {
  for (std::size_t p = 0; p < kSizes.size(); ++p)
    std::memcpy(weight(static_cast<int>(p)), x.data() + begin_[p],
                static_cast<std::size_t>(kSizes[p]) * sizeof(double));
}

void Toy::update_bucket(int bucket) {
  for (const int p : session_->parameters_of(bucket)) {
    if (!session_->used(p)) continue;
    const TensorView kept = session_->gradient(p);
    const double* gradient = kept.data != nullptr ? reinterpret_cast<const double*>(kept.data)
                                                  : gradient_[static_cast<std::size_t>(p)].data();
    double* x = weight(p);
    double* v = velocity.data() + begin_[static_cast<std::size_t>(p)];
    for (std::int64_t i = 0; i < kSizes[static_cast<std::size_t>(p)]; ++i) {
      v[i] = kMomentum * v[i] + gradient[i];
      x[i] -= kRate * v[i];
    }
  }
}

void Toy::forward() {
  for (int bucket = static_cast<int>(session_->buckets().size()); bucket-- > 0;)
    if (session_->wait_before_forward(bucket)) {
      update_bucket(bucket);
      session_->stepped(bucket);
    }
}

void Toy::backward_slowly(std::chrono::microseconds pause) {
  const Vector gradient = toy_gradient(weights(), session_->rank(), session_->step());
  for (int p = static_cast<int>(kSizes.size()); p-- > 0;) {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const auto index = static_cast<std::size_t>(p);
    const TensorView kept = session_->gradient(p);
    std::memcpy(
        kept.data != nullptr ? kept.data : reinterpret_cast<std::byte*>(gradient_[index].data()),
        gradient.data() + begin_[index], static_cast<std::size_t>(kSizes[index]) * sizeof(double));
    const std::optional<int> bucket = session_->mark_gradient_ready(p);
    if (!bucket || options_.style != Style::per_bucket || !session_->updates_in_backward())
      continue;
    if (session_->before_step(*bucket)) update_bucket(*bucket);
    session_->stepped(*bucket);
  }
}

void Toy::update() {
  session_->backward_done();
  std::vector<int> now;
  if (options_.style == Style::whole || !session_->updates_in_backward())
    for (const Bucket& bucket : session_->buckets())
      if (session_->before_step(bucket.id)) now.push_back(bucket.id);
  for (const int bucket : now) update_bucket(bucket);
  for (const int bucket : now) session_->stepped(bucket);
  session_->end_step();
}

void Toy::train_step() {
  forward();
  backward();
  update();
}

void Toy::train(int steps) {
  for (int i = 0; i < steps; ++i) train_step();
  forward();  // what is due before the next one
}

}  // namespace riffle::test
