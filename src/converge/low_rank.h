// Gradients that travel as factors (program.h, LowRank), of all workers: what was lost of them, and
// Q of each matrix.
#pragma once

#include "converge/matrix.h"
#include "riffle/trace.h"

namespace riffle::convergence {

// A matrix among the columns of a worker's row.
struct PlacedMatrix {
  std::size_t begin = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t rank = 0;  // of its factors
  [[nodiscard]] std::size_t size() const { return rows * columns; }
};
// Those of the layers of a trace that have factors of this rank; layers lie one after the other.
std::vector<PlacedMatrix> placed_matrices(const Trace& trace, int rank);

// Who exchanges: rows of the matrix of gradients, by weights that add up to one.
struct Members {
  const std::vector<std::size_t>& rows;
  const std::vector<double>& weights;
};

class LowRankGradients {
 public:
  LowRankGradients() = default;
  LowRankGradients(std::vector<PlacedMatrix> matrices, std::size_t workers, std::size_t columns);

  // The left factors of a bucket have come: what travels whole beside them is averaged.
  void average_rest(Columns bucket, const Members& members, Matrix& gradients) const;
  // The right ones have come: both exchanges of each matrix, nobody having looked in between.
  void average_matrices(Columns bucket, const Members& members, Matrix& gradients);

 private:
  void average(std::size_t which, const Members& members, Matrix& gradients);

  std::vector<PlacedMatrix> matrices_{};
  std::vector<std::vector<double>> right_{};  // by matrix; all workers hold the same
  Matrix lost_{};                             // as gradients
};

}  // namespace riffle::convergence
