#include "converge/workers.h"

#include <algorithm>
#include <cmath>

namespace riffle::convergence {
namespace {

Matrix equal_rows(int count, const std::vector<double>& row) {
  Matrix matrix(static_cast<std::size_t>(count), row.size());
  for (std::size_t i = 0; i < matrix.rows(); ++i) std::ranges::copy(row, matrix.row(i));
  return matrix;
}

}  // namespace

Workers::Workers(int count, const std::vector<double>& start, std::vector<Columns> buckets,
                 bool outer, const ConvergeOptions& options, std::vector<double> slow)
    : buckets_(buckets),
      weights_(equal_rows(count, start)),
      gradients_(static_cast<std::size_t>(count), start.size()),
      optimizer_(make_optimizer(options, static_cast<std::size_t>(count), start.size())),
      mixer_(std::move(buckets), Membership::all(count).ranks,
             {&gradients_, &weights_, optimizer_->state()}, outer),
      slow_(std::move(slow)) {}

void Workers::update(std::size_t bucket) {
  for (std::size_t i = 0; i < weights_.rows(); ++i)
    optimizer_->update(i, buckets_[bucket], gradients_, weights_);
}

double Workers::serve(int ahead, const Learn& learn) {
  if (!serving_) serving_.emplace(weights_, ahead, slow_);
  double loss = 0;
  for (std::size_t n = 0; n < weights_.rows(); ++n) {
    const int worker = serving_->next();
    const auto i = static_cast<std::size_t>(worker);
    loss += learn(worker, serving_->step_of(worker), weights_.row(i), gradients_.row(i));
    for (const Columns& bucket : buckets_) optimizer_->update(i, bucket, gradients_, weights_);
    serving_->sent(worker, weights_);
  }
  return loss / static_cast<double>(weights_.rows());
}

void Workers::finish() {
  mixer_.finish();
  if (serving_) serving_->finish(weights_);
}

double Workers::step(const Program& program, const Learn& learn) {
  using schedule::Point;
  if (const auto ahead = served_ahead(program, static_cast<int>(weights_.rows())))
    return serve(*ahead, learn);
  mixer_.begin(step_, program);
  double loss = 0;
  for (std::size_t i = 0; i < weights_.rows(); ++i)
    loss += learn(static_cast<int>(i), step_, weights_.row(i), gradients_.row(i));
  for (const Point point : {Point::gradient_ready, Point::backward_done, Point::before_step})
    mixer_.pass(step_, point);
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    if (!mixer_.postpones(b)) update(b);
  for (const Point point : {Point::stepped, Point::step_done}) mixer_.pass(step_, point);
  mixer_.pass(++step_, Point::before_forward);
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    if (mixer_.postpones(b)) update(b);
  return loss / static_cast<double>(weights_.rows());
}

double Workers::consensus_distance() const {
  const std::vector<double> mean = mean_row(weights_);
  double apart = 0;
  double size = 0;
  for (const double value : mean) size += value * value;
  for (std::size_t i = 0; i < weights_.rows(); ++i) {
    const double* row = weights_.row(i);
    double sum = 0;
    for (std::size_t k = 0; k < mean.size(); ++k) sum += (row[k] - mean[k]) * (row[k] - mean[k]);
    apart += sum;
  }
  return std::sqrt(apart / static_cast<double>(weights_.rows()) / size);
}

std::vector<Columns> columns_of(const BucketPlan& buckets, const Trace& trace,
                                std::size_t columns) {
  // Rounded shares of all elements before a layer; whole where the trace is the problem's own.
  std::vector<std::size_t> begins{0};
  std::int64_t before = 0;
  const double share = static_cast<double>(columns) / static_cast<double>(trace.parameters());
  for (const Layer& layer : trace.layers)
    begins.push_back(static_cast<std::size_t>(
        std::llround(static_cast<double>(before += layer.elements) * share)));
  std::vector<Columns> found;
  for (const Bucket& bucket : buckets)
    found.push_back({begins[bucket.first], begins[bucket.last + 1]});
  return found;
}

}  // namespace riffle::convergence
