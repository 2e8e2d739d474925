// What concerns the whole model, between steps. All ranks take part.
#pragma once

#include "runtime/exchanger.h"
#include "runtime/values.h"

namespace riffle::runtime {

// A piece of a tensor (as Values::tensor counts them), and its average over all ranks, a copy.
struct Averaged {
  std::size_t tensor = 0;
  std::size_t offset = 0;  // elements into the tensor
  TensorView own;
  TensorView average;
};

// Averages parameters and buffers from tensor `first` on, piece by piece.
void for_each_average(Exchanger& exchanger, const Values& values, std::size_t first,
                      const std::function<void(const Averaged&)>& visit);

// sqrt(mean_i |x_i - xbar|^2) / |xbar| over the parameters, which are the first ones.
double consensus_distance(Exchanger& exchanger, const Values& values, std::size_t parameters);

}  // namespace riffle::runtime
