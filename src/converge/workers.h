// N workers that train one problem, step by step.
#pragma once

#include "converge/mixer.h"
#include "converge/optimizer.h"
#include "converge/serving.h"

namespace riffle::convergence {

// Gives the loss of worker `i` at weights x and writes its gradient.
using Learn = std::function<double(int i, Step step, const double* x, double* gradient)>;

class Workers {
 public:
  // All start from `start`; `buckets` and `outer` as the mixer needs them. `slow`, as serving needs
  // it: how slow each is; empty: nobody.
  Workers(int count, const std::vector<double>& start, std::vector<Columns> buckets, bool outer,
          const ConvergeOptions& options, std::vector<double> slow = {});
  Workers(const Workers&) = delete;  // the mixer knows where the matrices are
  Workers& operator=(const Workers&) = delete;

  // From the forward of one step, after its merges, to that of the next. Gives the mean loss. Where
  // weights are served it is as many steps as there are workers, whoever makes them.
  double step(const Program& program, const Learn& learn);
  // Merges what is still under way.
  void finish();

  [[nodiscard]] const Matrix& weights() const { return weights_; }
  [[nodiscard]] Matrix& weights() { return weights_; }
  // sqrt(mean_i |x_i - xbar|^2) / |xbar|
  [[nodiscard]] double consensus_distance() const;

 private:
  void update(std::size_t bucket);
  double serve(int ahead, const Learn& learn);

  std::vector<Columns> buckets_;
  Matrix weights_;
  Matrix gradients_;
  std::unique_ptr<Optimizer> optimizer_;
  Mixer mixer_;
  std::vector<double> slow_;
  std::optional<Serving> serving_;
  Step step_ = 0;
};

// The columns of a trace's buckets: of the problem's own trace its layers one after the other, of
// another trace as large a share of all columns.
std::vector<Columns> columns_of(const BucketPlan& buckets, const Trace& trace, std::size_t columns);

}  // namespace riffle::convergence
