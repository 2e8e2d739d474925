// DS-Sync's extended stochastic weight averaging: the mean over sampled steps and all workers.
#pragma once

#include <span>

#include "torch/model.h"

namespace riffle::adapter {

// Means in float64 on this worker; workers are joined once, at the end.
class WeightAverage {
 public:
  // Of parameters and float buffers, over steps from `start` on; `saved` is what save() gave, or
  // nothing.
  WeightAverage(const Model& model, std::int64_t start, std::span<const std::byte> saved);

  // After a step: takes in the weights as they are now.
  void sample();
  // The means of all workers, by name, in the model's types. All ranks call it.
  [[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> joined(Session& session) const;
  // For a checkpoint: the sums of this worker.
  [[nodiscard]] std::vector<std::byte> save() const;

 private:
  std::vector<Named> tensors_;
  std::vector<at::Tensor> means_;
  std::int64_t start_;
  std::int64_t steps_ = 0;
  std::int64_t samples_ = 0;
};

}  // namespace riffle::adapter
