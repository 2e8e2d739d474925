// A small model in plain C++ that a session trains: linear regression with a bent last layer,
// SGD with momentum, parameters of odd sizes, data that differs between ranks and steps.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "riffle/session.h"

namespace riffle::test {

using Vector = std::vector<double>;

// Elements of the parameters, in the order forward uses them.
inline const std::vector<std::int64_t> kSizes{7, 33, 1, 64, 20};
constexpr double kRate = 0.05;
constexpr double kMomentum = 0.9;

std::size_t toy_elements();
Vector toy_start(std::uint64_t seed);
// The gradient of a mini-batch of `rank` in `step` at the weights `x`.
Vector toy_gradient(const Vector& x, Rank rank, Step step);
// v <- momentum*v + g; x <- x - rate*v, from `begin` for `count` elements.
void toy_update(Vector& x, Vector& v, const Vector& gradient, std::size_t begin, std::size_t count);

enum class Style {
  per_bucket,  // updates bucket by bucket, as gradients become ready
  whole,       // updates everything after backward
};

struct ToyOptions {
  Style style = Style::per_bucket;
  std::optional<Cluster> cluster = {};
  bool mixes_state = false;
  std::span<const std::byte> resume = {};
  std::uint64_t start = 1;  // seed of the weights before rank 0's are broadcast
  Collectives* collectives = nullptr;
  bool record = false;
  bool measure = false;
  bool sense = true;
  int sense_window = 20;
  std::optional<Plan> plan = {};
};

// One worker: the adapter of the toy.
class Toy {
 public:
  // `strategy`: also "auto".
  Toy(Engine& engine, const std::string& strategy, const ToyOptions& options = {});

  void train(int steps);
  void train_step();
  // The pieces of a step.
  void forward();
  void backward() { backward_slowly({}); }
  // Waits before each gradient.
  void backward_slowly(std::chrono::microseconds pause);
  void update();

  Session& session() { return *session_; }
  [[nodiscard]] Vector weights() const;
  void set_weights(const Vector& x);
  Vector velocity;

 private:
  void update_bucket(int bucket);
  [[nodiscard]] double* weight(int parameter) const;

  ToyOptions options_;
  std::vector<Vector> own_;       // where weights live unless the session keeps them
  std::vector<Vector> gradient_;  // the same for gradients
  std::vector<std::size_t> begin_;
  std::unique_ptr<Session> session_;
};

}  // namespace riffle::test
