#include "converge/low_rank.h"

#include <algorithm>

#include "codec/low_rank.h"
#include "converge/kernels.h"
#include "riffle/bucket.h"
#include "riffle/program.h"

namespace riffle::convergence {
namespace {

codec::Factors<double> factors_of(const PlacedMatrix& of, double* gradient, double* left,
                                  double* right) {
  return {.matrix = gradient + of.begin,
          .rows = of.rows,
          .columns = of.columns,
          .left = left,
          .right = right,
          .rank = of.rank};
}

void average_columns(Columns block, const Members& members, Matrix& values) {
  std::vector<double> mean(block.size());
  for (std::size_t i = 0; i < members.rows.size(); ++i)
    kernels().add(mean.data(), members.weights[i], values.row(members.rows[i]) + block.begin,
                  mean.size());
  for (const std::size_t row : members.rows)
    std::copy(mean.begin(), mean.end(), values.row(row) + block.begin);
}

}  // namespace

std::vector<PlacedMatrix> placed_matrices(const Trace& trace, int rank) {
  std::vector<PlacedMatrix> placed;
  std::size_t begin = 0;
  for (const Layer& layer : trace.layers) {
    const auto matrix = matrix_of(layer.shape, trace.dtype);
    const int columns = matrix ? rank_of_factors(matrix->rows, matrix->columns, rank) : 0;
    if (columns > 0)
      placed.push_back({begin, static_cast<std::size_t>(matrix->rows),
                        static_cast<std::size_t>(matrix->columns),
                        static_cast<std::size_t>(columns)});
    begin += static_cast<std::size_t>(layer.elements);
  }
  return placed;
}

LowRankGradients::LowRankGradients(std::vector<PlacedMatrix> matrices, std::size_t workers,
                                   std::size_t columns)
    : matrices_(std::move(matrices)), lost_(workers, columns) {
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    std::vector<double>& right = right_.emplace_back(matrices_[i].columns * matrices_[i].rank);
    codec::draw_right(factors_of(matrices_[i], nullptr, nullptr, right.data()), i);
  }
}

void LowRankGradients::average_rest(Columns bucket, const Members& members,
                                    Matrix& gradients) const {
  std::size_t begin = bucket.begin;
  for (const PlacedMatrix& matrix : matrices_) {
    if (matrix.begin < bucket.begin || matrix.begin >= bucket.end) continue;
    average_columns({begin, matrix.begin}, members, gradients);
    begin = matrix.begin + matrix.size();
  }
  average_columns({begin, bucket.end}, members, gradients);
}

void LowRankGradients::average_matrices(Columns bucket, const Members& members, Matrix& gradients) {
  for (std::size_t i = 0; i < matrices_.size(); ++i)
    if (matrices_[i].begin >= bucket.begin && matrices_[i].begin < bucket.end)
      average(i, members, gradients);
}

void LowRankGradients::average(std::size_t which, const Members& members, Matrix& gradients) {
  const PlacedMatrix& of = matrices_[which];
  std::vector<double> left_mean(of.rows * of.rank);
  std::vector<double> right_mean(of.columns * of.rank);
  std::vector<double> left(left_mean.size());
  std::vector<double> right(right_mean.size());
  const auto lost = [&](std::size_t row) { return lost_.row(row) + of.begin; };
  for (std::size_t i = 0; i < members.rows.size(); ++i) {
    const std::size_t row = members.rows[i];
    right = right_[which];
    codec::take_left(factors_of(of, gradients.row(row), left.data(), right.data()), lost(row));
    kernels().add(left_mean.data(), members.weights[i], left.data(), left.size());
  }
  for (std::size_t i = 0; i < members.rows.size(); ++i) {
    left = left_mean;
    codec::take_right(factors_of(of, gradients.row(members.rows[i]), left.data(), right.data()));
    kernels().add(right_mean.data(), members.weights[i], right.data(), right.size());
  }
  for (const std::size_t row : members.rows)
    codec::put_back(factors_of(of, gradients.row(row), left.data(), right_mean.data()), lost(row));
  right_[which] = right_mean;
}

}  // namespace riffle::convergence
