// Which samples a worker learns from, and when.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "riffle/random.h"
#include "riffle/world.h"

namespace riffle::convergence {

// "iid" (0), or A of "dirichlet:A"; anything else is a UsageError.
double parse_split(std::string_view text);

// A row for each worker: the share of each class in its data, drawn from a Dirichlet distribution
// whose parameters are all `alpha`.
std::vector<std::vector<double>> class_shares(int workers, int classes, double alpha,
                                              std::uint64_t seed);

// The samples of each batch. iid: every epoch deals all samples anew among the workers. Otherwise
// every worker has a shard of its own, all of one size, and shuffles it every epoch; its classes
// are as class_shares draws them, as long as there are samples of them left.
class Shards {
 public:
  // UsageError where there are not enough samples for a batch of each worker.
  Shards(const std::vector<int>& labels, int workers, int batch, double alpha, std::uint64_t seed);

  [[nodiscard]] Step epoch() const { return per_epoch_; }
  // Valid until the next call for another epoch.
  [[nodiscard]] std::span<const int> batch(int worker, Step step);
  // All samples of a worker, where it has its own.
  [[nodiscard]] const std::vector<std::vector<int>>& owned() const { return owned_; }

 private:
  void deal(Step epoch);

  int samples_;
  int workers_;
  int batch_;
  std::uint64_t seed_;
  Step per_epoch_;
  std::vector<std::vector<int>> owned_;  // by worker; empty: iid
  Step dealt_ = -1;                      // the epoch of `order_`
  std::vector<std::vector<int>> order_;  // by worker; one for all where iid
};

}  // namespace riffle::convergence
