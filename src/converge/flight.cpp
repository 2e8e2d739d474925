#include "converge/flight.h"

#include <algorithm>
#include <numeric>

#include "converge/kernels.h"
#include "riffle/error.h"
#include "schedule/rules.h"

namespace riffle::convergence {
namespace {

// Columns that are worked on together, so that the rows of a group stay in the cache.
constexpr std::size_t kBlock = 1024;

template <typename Visit>
void in_blocks(Columns all, const Visit& visit) {
  for (std::size_t begin = all.begin; begin < all.end; begin += kBlock)
    visit(Columns{begin, std::min(all.end, begin + kBlock)});
}

void outer_step(const Merge& merge, std::size_t n, double* x, const double* mean, double* agreed,
                double* momentum) {
  for (std::size_t k = 0; k < n; ++k) {
    const double moved = agreed[k] - mean[k];
    momentum[k] = merge.momentum * momentum[k] + moved;
    agreed[k] -=
        merge.learning_rate * (merge.nesterov ? moved + merge.momentum * momentum[k] : momentum[k]);
    x[k] = merge.xi == 0 ? agreed[k] : merge.xi * x[k] + (1 - merge.xi) * agreed[k];
  }
}

}  // namespace

Flight::Flight(const Exchange& exchange, Step step, std::vector<std::size_t> rows, Columns bucket)
    : exchange_(exchange),
      rows_(std::move(rows)),
      weights_(exchange.weights),
      bucket_(bucket),
      taken_(schedule::taken(exchange, step)),
      due_(schedule::merged(exchange, step)),
      in_place_(schedule::travels_in_place(exchange)) {
  if (weights_.empty()) weights_.assign(rows_.size(), 1);
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) weight /= sum;
}

// The part of the bucket that a member of a scatter owns.
Columns Flight::owned(std::size_t member) const {
  const std::size_t n = rows_.size();
  return {bucket_.begin + member * bucket_.size() / n,
          bucket_.begin + (member + 1) * bucket_.size() / n};
}

std::size_t Flight::received_rows() const {
  return exchange_.collective == Collective::shift ? rows_.size() : 1;
}

// The mean of all, of a member and one peer, or the parts that the members own.
void Flight::receive(const Matrix& from, Columns block, Matrix& received) const {
  const std::size_t n = rows_.size();
  const std::size_t width = block.size();
  const auto values = [&](std::size_t member) { return from.row(rows_[member]) + block.begin; };
  for (std::size_t i = 0; i < received.rows(); ++i) std::fill_n(received.row(i), width, 0.0);
  switch (exchange_.collective) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
      for (std::size_t i = 0; i < n; ++i)
        kernels().add(received.row(0), weights_[i], values(i), width);
      break;
    case Collective::all_gather:
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = std::max(owned(i).begin, block.begin);
             k < std::min(owned(i).end, block.end); ++k)
          received.row(0)[k - block.begin] = from.row(rows_[i])[k];
      break;
    case Collective::shift:
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t peer = (i + n - static_cast<std::size_t>(exchange_.shift) % n) % n;
        const double sum = weights_[i] + weights_[peer];
        kernels().add(received.row(i), weights_[i] / sum, values(i), width);
        kernels().add(received.row(i), weights_[peer] / sum, values(peer), width);
      }
      break;
    case Collective::serve:  // workers.cpp makes these steps
      throw InternalError("what is served is not mixed");
  }
}

void Flight::take(const std::vector<Matrix*>& from) {
  if (in_place_) return;
  for (const Matrix* values : from) {
    Snapshot& taken = snapshots_.emplace_back();
    taken.received = Matrix(received_rows(), bucket_.size());
    receive(*values, bucket_, taken.received);
    if (exchange_.merge.kind != Merge::Kind::correct) continue;
    taken.own = Matrix(rows_.size(), bucket_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i)
      std::copy_n(values->row(rows_[i]) + bucket_.begin, bucket_.size(), taken.own.row(i));
  }
}

void Flight::merge(const std::vector<Matrix*>& into, Outer* outer) {
  Matrix now(received_rows(), std::min(kBlock, bucket_.size()));
  for (std::size_t m = 0; m < into.size(); ++m)
    in_blocks(bucket_, [&](Columns block) {
      if (in_place_) receive(*into[m], block, now);
      const std::size_t at = block.begin - bucket_.begin;
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        const std::size_t which = received_rows() == 1 ? 0 : i;
        const double* received =
            in_place_ ? now.row(which) : snapshots_[m].received.row(which) + at;
        const bool has_own = exchange_.merge.kind == Merge::Kind::correct;
        join(i, block, into[m]->row(rows_[i]) + block.begin, received,
             has_own ? snapshots_[m].own.row(i) + at : nullptr, outer);
      }
    });
}

void Flight::join(std::size_t member, Columns block, double* x, const double* received,
                  const double* own, Outer* outer) const {
  const Merge& merge = exchange_.merge;
  const std::size_t width = block.size();
  switch (merge.kind) {
    case Merge::Kind::replace: {
      Columns part = block;
      if (exchange_.collective == Collective::reduce_scatter)
        part = {std::clamp(owned(member).begin, block.begin, block.end),
                std::clamp(owned(member).end, block.begin, block.end)};
      std::copy_n(received + (part.begin - block.begin), part.size(),
                  x + (part.begin - block.begin));
      break;
    }
    case Merge::Kind::mix:
      for (std::size_t k = 0; k < width; ++k) x[k] = merge.xi * x[k] + (1 - merge.xi) * received[k];
      break;
    case Merge::Kind::correct: {
      const double scale = exchange_.scales.empty() ? merge.scale : exchange_.scales[member];
      for (std::size_t k = 0; k < width; ++k) x[k] += scale * (received[k] - own[k]);
      break;
    }
    case Merge::Kind::outer:
      outer_step(merge, width, x, received, outer->agreed.row(rows_[member]) + block.begin,
                 outer->momentum.row(rows_[member]) + block.begin);
      break;
  }
}

}  // namespace riffle::convergence
