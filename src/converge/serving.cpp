#include "converge/serving.h"

#include <algorithm>

#include "riffle/error.h"
#include "schedule/rules.h"

namespace riffle::convergence {

Serving::Serving(const Matrix& weights, int ahead, std::vector<double> slow)
    : clocks_(static_cast<int>(weights.rows()), ahead),
      slow_(std::move(slow)),
      answered_(weights),
      held_(mean_row(weights)) {
  slow_.resize(weights.rows(), 1);
  for (int i = 0; i < static_cast<int>(weights.rows()); ++i)
    ends_.emplace(slow_[i], random_.uniform(), i);
}

int Serving::next() {
  RIFFLE_CHECK(!ends_.empty());  // the slowest is never held up
  const auto [time, chance, worker] = *ends_.begin();
  ends_.erase(ends_.begin());
  now_ = time;
  return worker;
}

void Serving::add(std::size_t worker, const Matrix& weights) {
  const double* x = weights.row(worker);
  const double* before = answered_.row(worker);
  const auto n = static_cast<double>(weights.rows());
  for (std::size_t k = 0; k < held_.size(); ++k) held_[k] += (x[k] - before[k]) / n;
}

void Serving::answer(std::size_t worker, Matrix& weights) {
  std::ranges::copy(held_, weights.row(worker));
  std::ranges::copy(held_, answered_.row(worker));
}

void Serving::sent(int worker, Matrix& weights) {
  const std::vector<int> answered = clocks_.sent(worker);
  for (const int each : answered) add(static_cast<std::size_t>(each), weights);
  for (const int each : answered) {
    answer(static_cast<std::size_t>(each), weights);
    ends_.emplace(now_ + slow_[each], random_.uniform(), each);
  }
}

void Serving::finish(Matrix& weights) {
  for (std::size_t i = 0; i < weights.rows(); ++i) add(i, weights);
  for (std::size_t i = 0; i < weights.rows(); ++i) answer(i, weights);
}

std::optional<int> served_ahead(const Program& program, int workers) {
  std::optional<int> ahead;
  bool others = false;
  for (const Exchange& exchange : program.exchanges) {
    if (exchange.group.size() < 2) continue;
    if (exchange.collective != Collective::serve) {
      others = true;
      continue;
    }
    if (const std::string why = schedule::refusal(exchange); !why.empty())
      usage_error("cannot run the exchange \"{}\": {}", print(exchange), why);
    others |= exchange.group.size() != workers || (ahead && *ahead != exchange.ahead);
    ahead = exchange.ahead;
  }
  if (ahead && others)
    usage_error("virtual workers serve all weights to all of them, and nothing else");
  return ahead;
}

}  // namespace riffle::convergence
