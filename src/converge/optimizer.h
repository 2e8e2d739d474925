// The optimizers of the workers, each with a state of its own, updating bucket by bucket.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "converge/matrix.h"
#include "riffle/converge.h"

namespace riffle::convergence {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Worker `i` updates these columns by its gradient.
  virtual void update(std::size_t i, Columns bucket, const Matrix& gradients, Matrix& weights) = 0;
  // What travels where a program exchanges the optimizer's state.
  virtual std::vector<Matrix*> state() = 0;
};

// UsageError for an unknown name.
std::unique_ptr<Optimizer> make_optimizer(const ConvergeOptions& options, std::size_t workers,
                                          std::size_t weights);

}  // namespace riffle::convergence
