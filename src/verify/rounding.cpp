// What still holds where values travel rounded. The rule that program.h states for Wire is played
// with the codec of the runtime, on one block of values, for as long as would show a drift; every
// member rounds what it contributes, and sums are in f32.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "codec/codec.h"
#include "riffle/random.h"
#include "verify/checks.h"

namespace riffle::verifier {
namespace {

constexpr Step kSteps = 10'000;
constexpr Step kWorkerSteps = 64 * kSteps;  // of more workers fewer steps
constexpr std::size_t kValues = 64;
constexpr double kMove = 0.01;
// What additions in f32 may add up to in so many steps, of values of about 1.
constexpr double kTolerance = 1e-3;

using Row = std::vector<float>;

// Workers that move at random between exchanges. Weights: the mean must be that of all moves.
// Gradients: the moves are sent, and what is not yet sent is kept; no move may go missing.
class Play {
 public:
  explicit Play(const Group& ranks)
      : ranks_(ranks), x_(static_cast<std::size_t>(ranks.size()), Row(kValues)), sum_(kValues) {}

  void step(Step step, const Program& program) {
    Random random(1, static_cast<std::uint64_t>(step));
    for (Row& row : x_)
      for (std::size_t k = 0; k < kValues; ++k) {
        const auto move = static_cast<float>(kMove * random.uniform(-2, 2));
        row[k] += move;
        sum_[k] += move;
      }
    for (const Exchange& exchange : program.exchanges)
      if (exchange.bucket == 0 && exchange.group.size() > 1 && exchange.wire != Wire::f32)
        mix(exchange);
  }

  // How far the mean is from where exact arithmetic has it.
  [[nodiscard]] double drift() const {
    double most = 0;
    for (std::size_t k = 0; k < kValues; ++k) {
      double mean = -sum_[k];
      for (const Row& row : x_) mean += row[k];
      most = std::max(most, std::fabs(mean) / static_cast<double>(x_.size()));
    }
    return most;
  }

 private:
  // The reference is where all began, at zero: the farthest there is.
  void mix(const Exchange& exchange) {
    const auto n = static_cast<std::size_t>(exchange.group.size());
    std::vector<double> weights = exchange.weights;
    if (weights.empty()) weights.assign(n, 1);
    std::vector<Row> sent;
    std::vector<Row> lost(n, Row(kValues));
    for (std::size_t m = 0; m < n; ++m) {
      sent.push_back(row(exchange, m));
      codec::round(exchange.wire, sent[m].data(), kValues, {lost[m].data(), 1});
    }
    if (exchange.payload == Payload::gradient) return send(exchange, sent, lost);
    for (std::size_t m = 0; m < n; ++m) {
      const std::size_t shift = static_cast<std::size_t>(exchange.shift) % n;
      std::vector<std::size_t> from(n);
      std::iota(from.begin(), from.end(), 0);
      if (exchange.collective == Collective::shift) from = {m, (m + n - shift) % n};
      join(exchange, m, sent, from, weights, lost[m]);
    }
  }

  void send(const Exchange& exchange, const std::vector<Row>& sent, const std::vector<Row>& lost) {
    if (exchange.collective == Collective::all_gather) return;  // the second half
    for (std::size_t m = 0; m < sent.size(); ++m) {
      for (std::size_t k = 0; k < kValues; ++k) sum_[k] -= sent[m][k];
      row(exchange, m) = exchange.feedback ? lost[m] : Row(kValues);
    }
  }

  void join(const Exchange& exchange, std::size_t member, const std::vector<Row>& sent,
            const std::vector<std::size_t>& from, const std::vector<double>& weights,
            const Row& lost) {
    double total = 0;
    for (const std::size_t each : from) total += weights[each];
    Row& x = row(exchange, member);
    const double scale = exchange.scales.empty() ? exchange.merge.scale : exchange.scales[member];
    for (std::size_t k = 0; k < kValues; ++k) {
      float mean = 0;
      for (const std::size_t each : from)
        mean += static_cast<float>(weights[each] / total) * sent[each][k];
      if (exchange.feedback) mean += lost[k];
      switch (exchange.merge.kind) {
        case Merge::Kind::mix:
          x[k] += static_cast<float>(1 - exchange.merge.xi) * (mean - x[k]);
          break;
        case Merge::Kind::correct:
          x[k] += static_cast<float>(scale) * (mean - x[k]);
          break;
        case Merge::Kind::outer:  // the mean stands for where it ends
          x[k] = exchange.merge.xi == 0
                     ? mean
                     : x[k] + static_cast<float>(1 - exchange.merge.xi) * (mean - x[k]);
          break;
        case Merge::Kind::replace:
          x[k] = mean;
          break;
      }
    }
  }

  Row& row(const Exchange& exchange, std::size_t member) {
    return x_[static_cast<std::size_t>(ranks_.index_of(exchange.group.ranks()[member]))];
  }

  Group ranks_;
  std::vector<Row> x_;       // weights, or what is not yet sent of gradients
  std::vector<double> sum_;  // of all moves; of gradients, of those that have not been sent
};

}  // namespace

void check_rounding(const Schedule& schedule, Verification& result) {
  const Exchange* rounded = nullptr;
  for (const Program& program : schedule.programs)
    for (const Exchange& exchange : program.exchanges)
      if (exchange.wire != Wire::f32 && exchange.group.size() > 1) rounded = &exchange;
  if (rounded == nullptr) return;
  const Step steps = std::clamp<Step>(kWorkerSteps / schedule.ranks.size(), 100, kSteps);
  Play play(schedule.ranks);
  for (Step step = 0; step < steps; ++step) play.step(step, schedule.at(step));
  result.rounding = {.wire = rounded->wire,
                     .error_bound = codec::error_bound(rounded->wire),
                     .steps = steps,
                     .drift = play.drift()};
  if (!rounded->feedback && rounded->payload == Payload::weight && result.mean_preserved)
    result.mean_preserved = false;
  if (!rounded->feedback || play.drift() < kTolerance) return;
  add(result.problems,
      {Problem::Check::mean, steps, 0, schedule.ranks,
       fmt::format("rounding to {} has moved the mean by {:.2g} of what the values have moved",
                   name_of(rounded->wire), play.drift())});
}

}  // namespace riffle::verifier
