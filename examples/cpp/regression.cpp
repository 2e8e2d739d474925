// A training loop in plain C++: linear regression on N workers, by any strategy, without a
// framework. This is also all that an adapter for a framework does.
//
//   riffle launch -n 4 -- regression sesgd        (or torchrun --no-python, mpirun, srun; or alone)
#include <riffle/random.h>
#include <riffle/riffle.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace {

constexpr int kFeatures = 20;
constexpr int kSteps = 300;
constexpr int kBatch = 16;
constexpr float kRate = 0.05F;

using Vector = std::array<float, kFeatures>;

Vector true_weights() {
  Vector weights{};
  riffle::Random random(1);
  for (float& weight : weights) weight = static_cast<float>(random.normal());
  return weights;
}

// Gradient of the mean squared error on a batch of this worker's own data.
Vector gradient_of(const float* weights, int rank, riffle::Step step) {
  static const Vector truth = true_weights();
  riffle::Random random(100 + static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step));
  Vector gradient{};
  for (int example = 0; example < kBatch; ++example) {
    Vector x{};
    float error = static_cast<float>(0.1 * random.normal());
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(random.normal());
      error += (weights[i] - truth[i]) * x[i];
    }
    for (std::size_t i = 0; i < x.size(); ++i) gradient[i] += 2 * error * x[i] / kBatch;
  }
  return gradient;
}

float* floats(const riffle::TensorView& view) {
  return reinterpret_cast<float*>(view.data);
}

// The model's one parameter: where it is depends on what the strategy exchanges.
class Model {
 public:
  Model(riffle::Engine& engine, const char* strategy)
      : session_(engine, riffle::StrategyTable::builtin().make(strategy), spec()) {}

  void step() {
    if (session_.wait_before_forward(0)) update();
    float* gradient = session_.keeps_gradients() ? floats(session_.gradient(0)) : gradient_.data();
    const Vector fresh = gradient_of(weights(), session_.rank(), session_.step());
    std::copy(fresh.begin(), fresh.end(), gradient);
    session_.mark_gradient_ready(0);
    session_.backward_done();
    if (session_.before_step(0)) update();
    session_.end_step();
  }

  // The distance to the truth, after one exact average over all workers.
  float finish() {
    if (session_.wait_before_forward(0)) update();
    session_.finish();
    const Vector truth = true_weights();
    float error = 0;
    for (std::size_t i = 0; i < truth.size(); ++i)
      error = std::max(error, std::abs(weights()[i] - truth[i]));
    return error;
  }

  [[nodiscard]] const riffle::Session& session() const { return session_; }

 private:
  riffle::ModelSpec spec() {
    riffle::TensorSpec tensor{.name = "weights",
                              .elements = kFeatures,
                              .dtype = riffle::DType::f32,
                              .data = reinterpret_cast<std::byte*>(own_.data())};
    return {.parameters = {tensor}};
  }
  float* weights() { return session_.keeps_weights() ? floats(session_.weights(0)) : own_.data(); }
  void update() {
    const float* gradient =
        session_.keeps_gradients() ? floats(session_.gradient(0)) : gradient_.data();
    for (std::size_t i = 0; i < own_.size(); ++i) weights()[i] -= kRate * gradient[i];
    session_.stepped(0);
  }

  Vector own_{};
  Vector gradient_{};
  riffle::Session session_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto engine = riffle::launched_engine();
    Model model(*engine, argc > 1 ? argv[1] : "bsp");
    for (int step = 0; step < kSteps; ++step) model.step();
    const float error = model.finish();
    if (engine->rank() == 0)
      std::printf("%d workers, %s: off by %.4f\n", engine->size(),
                  model.session().strategy().spec.c_str(), static_cast<double>(error));
    return error < 0.05F ? 0 : 1;
  } catch (const riffle::UsageError& error) {
    std::fprintf(stderr, "regression: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "regression: %s\n", error.what());
    return 1;
  }
}
