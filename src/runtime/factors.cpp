#include "runtime/factors.h"

#include <algorithm>
#include <tuple>

#include "codec/low_rank.h"
#include "riffle/error.h"

namespace riffle::runtime {
namespace {

bool may_have_factors(const TensorSpec& tensor) {
  return tensor.dtype == DType::f32 || tensor.dtype == DType::f64;
}

// The columns of the factors of a tensor's gradient, if it were of such a type; 0: it travels
// whole.
std::pair<MatrixShape, int> factors_of(const TensorSpec& tensor, int rank) {
  const auto matrix = matrix_of(tensor.shape, tensor.dtype);
  if (!matrix || rank == 0) return {};
  return {*matrix, rank_of_factors(matrix->rows, matrix->columns, rank)};
}

// Column by column, from torch's rows.
template <typename T>
std::vector<T> first_right(const TensorSpec& tensor, std::size_t columns, std::size_t rank,
                           std::uint64_t stream) {
  std::vector<T> right(columns * rank);
  if (tensor.first_q.empty())
    codec::draw_right<T>({.columns = columns, .right = right.data(), .rank = rank}, stream);
  for (std::size_t i = 0; i < tensor.first_q.size(); ++i)
    right[i % rank * columns + i / rank] = static_cast<T>(tensor.first_q[i]);
  return right;
}

template <typename T>
void write(Memory& memory, TensorView to, const std::vector<T>& values) {
  memory.write(to, std::as_bytes(std::span(values)));
}

}  // namespace

void check_factors(const ModelSpec& model, int rank) {
  for (const TensorSpec& each : model.parameters) {
    const auto [matrix, columns] = factors_of(each, rank);
    if (columns > 0 && !may_have_factors(each))
      usage_error("{} is {}: only gradients of f32 and f64 travel as factors", each.name,
                  name_of(each.dtype));
    if (each.first_q.empty()) continue;
    if (columns == 0)
      usage_error("first_q: {} does not travel as factors of rank {}", each.name, rank);
    if (static_cast<std::int64_t>(each.first_q.size()) != matrix.columns * columns)
      usage_error("first_q: {} needs {} x {} values, not {}", each.name, matrix.columns, columns,
                  each.first_q.size());
  }
}

GradientFactors::GradientFactors(Memory& memory, const ModelSpec& model, const BucketPlan& buckets,
                                 int rank)
    : rank_(rank), parameters_(model.parameters.size()) {
  if (rank == 0) return;
  for (const Bucket& bucket : buckets) {
    Parts left;
    Parts right;
    for (int p = bucket.first; p <= bucket.last; ++p) {
      const TensorSpec& tensor = model.parameters.at(p);
      Parameter& of = parameters_[p];
      if (may_have_factors(tensor)) std::tie(of.matrix, of.rank) = factors_of(tensor, rank);
      const auto add = [&](Parts& parts, std::int64_t count) {
        return append(parts, bucket.id, tensor.dtype, count);
      };
      if (of.rank > 0) of.left = add(left, of.matrix.rows * of.rank);
      if (of.rank > 0) of.right = add(right, of.matrix.columns * of.rank);
      const std::int64_t inside = of.rank > 0 ? of.matrix.rows * of.matrix.columns : 0;
      if (tensor.elements > inside) of.rest = add(left, tensor.elements - inside);
    }
    for (int p = bucket.first; p <= bucket.last; ++p)  // flags, as Layout has them
      ++std::ranges::find(left, model.parameters[p].dtype, &Part::dtype)->count;
    left_.emplace_back(memory, left);
    right_.emplace_back(memory, right);
  }
}

void GradientFactors::start(Memory& memory, const ModelSpec& model) const {
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const Parameter& of = parameters_[p];
    if (of.rank == 0) continue;
    const TensorView to = right_[of.right.bucket].at(of.right);
    const TensorSpec& tensor = model.parameters[p];
    const auto columns = static_cast<std::size_t>(of.matrix.columns);
    const auto rank = static_cast<std::size_t>(of.rank);
    if (to.dtype == DType::f32)
      write(memory, to, first_right<float>(tensor, columns, rank, p));
    else
      write(memory, to, first_right<double>(tensor, columns, rank, p));
  }
}

void GradientFactors::take_over(Memory& memory, const GradientFactors& old) const {
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const Place& to = parameters_[p].right;
    const Place& from = old.parameters_[p].right;
    if (parameters_[p].rank > 0)
      memory.copy(right_[to.bucket].at(to), old.right_[from.bucket].at(from));
  }
}

Factored GradientFactors::factored(const Parameter& of, TensorView gradient,
                                   TensorView lost) const {
  const auto inside = static_cast<std::size_t>(of.matrix.rows * of.matrix.columns);
  return {.matrix = part_of(gradient, 0, inside),
          .lost = part_of(lost, 0, inside),
          .left = left_[of.left.bucket].at(of.left),
          .right = right_[of.right.bucket].at(of.right),
          .rows = static_cast<std::size_t>(of.matrix.rows),
          .columns = static_cast<std::size_t>(of.matrix.columns),
          .rank = static_cast<std::size_t>(of.rank)};
}

void GradientFactors::prepare(Flight& flight, const Layout& layout, const Flat& gradient,
                              const Flat& lost) const {
  const Bucket& bucket = layout.buckets[flight.exchange.bucket];
  const Flat& left = left_.at(bucket.id);
  const bool is_left = flight.exchange.low_rank.factor == LowRank::Factor::left;
  flight.data = (is_left ? left : right_.at(bucket.id)).parts();
  std::vector<std::size_t> flags(gradient.parts().size());
  for (int p = bucket.first; p <= bucket.last; ++p) {
    const Parameter& of = parameters_[p];
    const Place& place = layout.gradients[p];
    ++flags[place.part];
    if (of.rank > 0) flight.factored.push_back(factored(of, gradient.at(place), lost.at(place)));
    if (!is_left || of.rest.count == 0) continue;
    const TensorView values = gradient.at(place);
    flight.whole.emplace_back(part_of(values, values.count - of.rest.count, of.rest.count),
                              left.at(of.rest));
  }
  // At the end of each part.
  for (std::size_t i = 0; is_left && i < flags.size(); ++i) {
    const TensorView from = gradient.parts()[i];
    const TensorView to = *std::ranges::find(left.parts(), from.dtype, &TensorView::dtype);
    flight.whole.emplace_back(part_of(from, from.count - flags[i], flags[i]),
                              part_of(to, to.count - flags[i], flags[i]));
  }
}

}  // namespace riffle::runtime
