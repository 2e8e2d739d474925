// What still holds where gradients travel as factors. The rule that program.h states for LowRank is
// played in f32 on one matrix for many steps: what was delivered, and what workers still hold as
// lost, must add up to the mean of all gradients.
#include "codec/low_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "riffle/random.h"
#include "verify/checks.h"

namespace riffle::verifier {
namespace {

constexpr Step kPlayed = 1000;
constexpr Step kPlayedByAll = 4 * kPlayed;  // of more workers fewer steps
constexpr int kMostRank = 8;
constexpr float kGradient = 0.01F;
// What additions in f32 may add up to in so many steps, of values of about 1.
constexpr double kMostDrift = 1e-3;

using Values = std::vector<float>;

class FactorPlay {
 public:
  FactorPlay(int rank, std::vector<double> weights)
      : rank_(static_cast<std::size_t>(rank)),
        side_(4 * rank_ + 1),  // the smallest square that has factors of this rank
        weights_(std::move(weights)),
        lost_(weights_.size(), Values(side_ * side_)),
        right_(side_ * rank_),
        missing_(side_ * side_) {
    codec::draw_right(factors(nullptr, nullptr, right_), 0);
  }

  void step(Step step) {
    Random random(2, static_cast<std::uint64_t>(step));
    std::vector<Values> gradients(weights_.size(), Values(side_ * side_));
    for (std::size_t m = 0; m < gradients.size(); ++m)
      for (std::size_t k = 0; k < gradients[m].size(); ++k) {
        gradients[m][k] = kGradient * static_cast<float>(random.uniform(-1, 3));
        missing_[k] += weights_[m] * gradients[m][k];
      }
    exchange(gradients);
    for (std::size_t k = 0; k < missing_.size(); ++k) missing_[k] -= gradients.front()[k];
  }

  // How far what was delivered and what is kept are from the mean of all gradients.
  [[nodiscard]] double drift() const {
    double most = 0;
    for (std::size_t k = 0; k < missing_.size(); ++k) {
      double left = missing_[k];
      for (std::size_t m = 0; m < lost_.size(); ++m) left -= weights_[m] * lost_[m][k];
      most = std::max(most, std::fabs(left));
    }
    return most;
  }

 private:
  [[nodiscard]] codec::Factors<float> factors(float* matrix, float* left, Values& right) const {
    return {matrix, side_, side_, left, right.data(), rank_};
  }
  // As the members do it one after the other; they agree on both means.
  void exchange(std::vector<Values>& gradients) {
    Values left(side_ * rank_);
    Values right(side_ * rank_);
    Values left_mean(left.size());
    Values right_mean(right.size());
    const auto add = [](Values& to, double weight, const Values& values) {
      for (std::size_t k = 0; k < to.size(); ++k) to[k] += static_cast<float>(weight) * values[k];
    };
    for (std::size_t m = 0; m < gradients.size(); ++m) {
      right = right_;
      codec::take_left(factors(gradients[m].data(), left.data(), right), lost_[m].data());
      add(left_mean, weights_[m], left);
    }
    for (std::size_t m = 0; m < gradients.size(); ++m) {
      left = left_mean;
      codec::take_right(factors(gradients[m].data(), left.data(), right));
      add(right_mean, weights_[m], right);
    }
    for (std::size_t m = 0; m < gradients.size(); ++m)
      codec::put_back(factors(gradients[m].data(), left.data(), right_mean), lost_[m].data());
    right_ = right_mean;
  }

  std::size_t rank_;
  std::size_t side_;
  std::vector<double> weights_;
  std::vector<Values> lost_;
  Values right_;
  std::vector<double> missing_;  // of the sum of mean gradients, what has not been delivered
};

const Exchange* find_factor(const Schedule& schedule) {
  for (const Program& program : schedule.programs)
    for (const Exchange& exchange : program.exchanges)
      if (exchange.low_rank.factor == LowRank::Factor::left && exchange.group.size() > 1)
        return &exchange;
  return nullptr;
}

std::vector<double> weight_shares(const Exchange& exchange) {
  std::vector<double> weights = exchange.weights;
  if (weights.empty()) weights.assign(static_cast<std::size_t>(exchange.group.size()), 1);
  double sum = 0;
  for (const double each : weights) sum += each;
  for (double& each : weights) each /= sum;
  return weights;
}

}  // namespace

void check_low_rank(const Schedule& schedule, Verification& result) {
  const Exchange* found = find_factor(schedule);
  if (found == nullptr) return;
  const int rank = std::min(found->low_rank.rank, kMostRank);
  const Step steps = std::clamp<Step>(kPlayedByAll / schedule.ranks.size(), 20, kPlayed);
  FactorPlay play(rank, weight_shares(*found));
  for (Step step = 0; step < steps; ++step) play.step(step);
  result.low_rank = {.rank = rank, .steps = steps, .drift = play.drift()};
  if (play.drift() < kMostDrift) return;
  add(result.problems,
      {Problem::Check::mean, steps, found->bucket, schedule.ranks,
       fmt::format("factors of rank {} have lost {:.2g} of what gradients have added up to", rank,
                   play.drift())});
}

}  // namespace riffle::verifier
