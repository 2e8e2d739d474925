#include "converge/mixer.h"

#include <algorithm>
#include <utility>

#include "converge/kernels.h"
#include "riffle/error.h"
#include "schedule/rules.h"

namespace riffle::convergence {
namespace {

// The exchanges of a step so far, by row: who meets whom is asked of each member, not of each pair
// of exchanges, of which a thousand workers have a million.
class Meetings {
 public:
  explicit Meetings(int rows) : latest_(static_cast<std::size_t>(rows), kNone) {}

  // One that chains with another in flight finds its result where both travel in place; anything
  // else no worker can run.
  void add(const Exchange& exchange, const std::vector<std::size_t>& rows) {
    std::string why = schedule::refusal(exchange);
    if (exchange.wire != Wire::f32) why = "virtual workers mix without rounding; use wire=f32";
    for (const std::size_t row : rows) {
      for (std::size_t at = latest_[row]; why.empty() && at != kNone; at = met_[at].before)
        if (schedule::chains_in_flight(*met_[at].exchange, exchange))
          why = schedule::refusal(*met_[at].exchange, exchange);
      met_.push_back({&exchange, std::exchange(latest_[row], met_.size())});
    }
    if (!why.empty()) usage_error("cannot run the exchange \"{}\": {}", print(exchange), why);
  }

 private:
  static constexpr std::size_t kNone = -1;
  struct Met {
    const Exchange* exchange;
    std::size_t before;  // the one before it of the same row
  };
  std::vector<std::size_t> latest_;  // of each row
  std::vector<Met> met_;
};

}  // namespace

std::vector<double> mean_row(const Matrix& matrix) {
  std::vector<double> mean(matrix.columns());
  for (std::size_t i = 0; i < matrix.rows(); ++i)
    kernels().add(mean.data(), 1 / static_cast<double>(matrix.rows()), matrix.row(i), mean.size());
  return mean;
}

Mixer::Mixer(std::vector<Columns> buckets, Group ranks, Values values, bool outer)
    : buckets_(std::move(buckets)),
      ranks_(std::move(ranks)),
      values_(std::move(values)),
      postpones_(buckets_.size()) {
  if (outer)
    outer_.push_back(
        {*values_.weights, Matrix(values_.weights->rows(), values_.weights->columns())});
}

void Mixer::set_factors(std::vector<PlacedMatrix> matrices) {
  low_rank_ = LowRankGradients(std::move(matrices), values_.gradients->rows(),
                               values_.gradients->columns());
}

void Mixer::begin(Step step, const Program& program) {
  std::ranges::fill(postpones_, 0);
  Meetings meetings(ranks_.size());
  for (const Exchange& exchange : program.exchanges) {
    if (exchange.group.size() < 2) continue;
    std::vector<std::size_t> rows;
    rows.reserve(static_cast<std::size_t>(exchange.group.size()));
    for (const Rank rank : exchange.group) {
      const int row = ranks_.index_of(rank);
      RIFFLE_CHECK(row >= 0);
      rows.push_back(static_cast<std::size_t>(row));
    }
    meetings.add(exchange, rows);
    const auto bucket = static_cast<std::size_t>(exchange.bucket);
    if (schedule::postpones(exchange)) postpones_.at(bucket) = 1;
    flights_.emplace_back(exchange, step, std::move(rows), buckets_.at(bucket));
  }
}

void Mixer::pass(Step step, schedule::Point point) {
  const schedule::Moment now = schedule::moment(step, point);
  for (Flight& flight : flights_)
    if (flight.due() == now) merge(flight);
  std::erase_if(flights_, [&](const Flight& flight) { return flight.due() == now; });
  for (Flight& flight : flights_)
    if (flight.taken() == now) flight.take(matrices(flight.exchange().payload));
}

void Mixer::finish() {
  for (Flight& flight : flights_) merge(flight);
  flights_.clear();
}

void Mixer::merge(Flight& flight) {
  switch (flight.exchange().low_rank.factor) {
    case LowRank::Factor::left:
      return low_rank_.average_rest(flight.bucket(), flight.members(), *values_.gradients);
    case LowRank::Factor::right:
      return low_rank_.average_matrices(flight.bucket(), flight.members(), *values_.gradients);
    case LowRank::Factor::none:
      break;
  }
  flight.merge(matrices(flight.exchange().payload), outer_.empty() ? nullptr : &outer_.front());
}

std::vector<Matrix*> Mixer::matrices(Payload payload) const {
  switch (payload) {
    case Payload::gradient:
      return {values_.gradients};
    case Payload::weight:
      return {values_.weights};
    case Payload::state:
      return values_.state;
    case Payload::buffers:
      break;
  }
  return {};  // the problems have no statistics
}

}  // namespace riffle::convergence
