// A row for each worker, a column for each weight.
#pragma once

#include <cstddef>
#include <vector>

namespace riffle::convergence {

class Matrix {
 public:
  Matrix() = default;
  Matrix(std::size_t rows, std::size_t columns)
      : rows_(rows), columns_(columns), values_(rows * columns) {}

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] double* row(std::size_t i) { return values_.data() + i * columns_; }
  [[nodiscard]] const double* row(std::size_t i) const { return values_.data() + i * columns_; }

 private:
  std::size_t rows_ = 0;
  std::size_t columns_ = 0;
  std::vector<double> values_;
};

// A run of columns: those of a bucket.
struct Columns {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t size() const { return end - begin; }
  bool operator==(const Columns&) const = default;
};

std::vector<double> mean_row(const Matrix& matrix);

}  // namespace riffle::convergence
