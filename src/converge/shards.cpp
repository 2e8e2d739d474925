#include "converge/shards.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "riffle/error.h"

namespace riffle::convergence {
namespace {

// Marsaglia and Tsang, 2000; below 1 by the power of a uniform number.
double gamma(double alpha, Random& random) {
  if (alpha < 1) return gamma(alpha + 1, random) * std::pow(1 - random.uniform(), 1 / alpha);
  const double d = alpha - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal();
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - random.uniform()) < x * x / 2 + d - d * v + d * std::log(v))
      return d * v;
  }
}

// A class by these shares, of those that have samples left.
std::size_t draw_class(const std::vector<double>& shares, const std::vector<std::vector<int>>& left,
                       Random& random) {
  double sum = 0;
  for (std::size_t c = 0; c < shares.size(); ++c)
    if (!left[c].empty()) sum += shares[c];
  double at = random.uniform() * sum;
  std::size_t last = 0;
  for (std::size_t c = 0; c < shares.size(); ++c) {
    if (left[c].empty()) continue;
    last = c;
    if ((at -= shares[c]) < 0) break;
  }
  return last;
}

// Every worker draws from all samples by its own shares, as a site has data of its own kind: two
// may have the same sample, none has one twice. A class that is used up leaves the shares of the
// others as they are to each other.
std::vector<std::vector<int>> divide(const std::vector<int>& labels, int workers, double alpha,
                                     std::uint64_t seed) {
  const int classes = *std::ranges::max_element(labels) + 1;
  const auto shares = class_shares(workers, classes, alpha, seed);
  std::vector<std::vector<int>> owned(static_cast<std::size_t>(workers));
  for (std::size_t w = 0; w < owned.size(); ++w) {
    Random random(seed * 4096 + w, 12);
    std::vector<std::vector<int>> left(static_cast<std::size_t>(classes));
    for (const int sample : random.permutation(static_cast<int>(labels.size())))
      left[labels[sample]].push_back(sample);
    for (std::size_t i = 0; i < labels.size() / static_cast<std::size_t>(workers); ++i) {
      std::vector<int>& from = left[draw_class(shares[w], left, random)];
      owned[w].push_back(from.back());
      from.pop_back();
    }
  }
  return owned;
}

}  // namespace

double parse_split(std::string_view text) {
  if (text == "iid") return 0;
  constexpr std::string_view kPrefix = "dirichlet:";
  if (!text.starts_with(kPrefix))
    usage_error("--split: {} is neither iid nor dirichlet:A", quote(text));
  const double alpha = parse_number(text.substr(kPrefix.size()), "--split dirichlet");
  if (alpha < 1e-3 || alpha > 1e6)
    usage_error("--split: dirichlet:{} must be from 0.001 to 1000000", alpha);
  return alpha;
}

std::vector<std::vector<double>> class_shares(int workers, int classes, double alpha,
                                              std::uint64_t seed) {
  Random random(seed, 11);
  std::vector<std::vector<double>> shares(static_cast<std::size_t>(workers));
  for (auto& each : shares) {
    for (int c = 0; c < classes; ++c) each.push_back(gamma(alpha, random) + 1e-300);
    const double sum = std::accumulate(each.begin(), each.end(), 0.0);
    for (double& share : each) share /= sum;
  }
  return shares;
}

Shards::Shards(const std::vector<int>& labels, int workers, int batch, double alpha,
               std::uint64_t seed)
    : samples_(static_cast<int>(labels.size())),
      workers_(workers),
      batch_(batch),
      seed_(seed),
      per_epoch_(samples_ / (Step{workers} * batch)) {
  if (per_epoch_ == 0)
    usage_error("{} workers with batches of {} need {} samples, there are {}", workers, batch,
                Step{workers} * batch, samples_);
  if (alpha > 0) owned_ = divide(labels, workers, alpha, seed);
}

void Shards::deal(Step epoch) {
  dealt_ = epoch;
  const Random root(seed_, 20);
  const auto stream = static_cast<std::uint64_t>(epoch) * 4096;
  if (owned_.empty()) {
    order_ = {Random(Random(root).next(), stream).permutation(samples_)};
    return;
  }
  order_ = owned_;
  for (std::size_t w = 0; w < order_.size(); ++w)
    Random(Random(root).next(), stream + w).shuffle(std::span(order_[w]));
}

std::span<const int> Shards::batch(int worker, Step step) {
  if (step / per_epoch_ != dealt_) deal(step / per_epoch_);
  const Step within = step % per_epoch_;
  const auto size = static_cast<std::size_t>(batch_);
  if (!owned_.empty())
    return std::span(order_[worker]).subspan(static_cast<std::size_t>(within) * size, size);
  return std::span(order_[0]).subspan(static_cast<std::size_t>(within * workers_ + worker) * size,
                                      size);
}

}  // namespace riffle::convergence
