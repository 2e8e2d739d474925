#include "riffle/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "riffle/error.h"

namespace riffle {
namespace {

// Weighted sums of a run of points; the line through them follows from these.
struct Moments {
  long double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0, wyy = 0;

  void add(long double weight, long double x, long double y) {
    w += weight;
    wx += weight * x;
    wxx += weight * x * x;
    wy += weight * y;
    wxy += weight * x * y;
    wyy += weight * y * y;
  }
  Moments operator-(const Moments& o) const {
    return {w - o.w, wx - o.wx, wxx - o.wxx, wy - o.wy, wxy - o.wxy, wyy - o.wyy};
  }

  [[nodiscard]] LinearCost line() const {
    const long double spread = w * wxx - wx * wx;
    if (spread <= 0) return {Seconds(static_cast<double>(wy / w)), {}};
    const long double b = (w * wxy - wx * wy) / spread;
    return {Seconds(static_cast<double>((wy - b * wx) / w)), {static_cast<double>(b)}};
  }
  // The best line that costs nothing negative: a few points at the end must not bend what lies
  // beyond them.
  [[nodiscard]] LinearCost sane_line() const {
    const LinearCost best = line();
    if (best.a.count() < 0) return {Seconds{}, {static_cast<double>(wxy / wxx)}};
    if (best.b.value < 0) return {Seconds(static_cast<double>(wy / w)), {}};
    return best;
  }
  // Weighted sum of squared differences from that line.
  [[nodiscard]] double error() const {
    const LinearCost cost = sane_line();
    const long double a = cost.a.count();
    const long double b = cost.b.value;
    const long double sum =
        wyy - 2 * a * wy - 2 * b * wxy + a * a * w + 2 * a * b * wx + b * b * wxx;
    return static_cast<double>(std::max(sum, 0.0L));
  }
};

template <typename Cost>
std::pair<Seconds, double> residuals(std::span<const MeasuredPoint> points, const Cost& cost) {
  double squares = 0;
  double relative = 0;
  for (const MeasuredPoint& point : points) {
    const double off = (point.time - cost(point.size)).count();
    squares += off * off;
    relative += off * off / (point.time.count() * point.time.count());
  }
  const auto n = static_cast<double>(points.size());
  return {Seconds(std::sqrt(squares / n)), std::sqrt(relative / n)};
}

std::vector<MeasuredPoint> checked_and_sorted(std::span<const MeasuredPoint> points) {
  std::vector<MeasuredPoint> sorted(points.begin(), points.end());
  std::ranges::sort(sorted, {}, &MeasuredPoint::size);
  for (const MeasuredPoint& point : sorted)
    if (!(point.time.count() > 0) || point.size.count < 0)
      usage_error("fit: {} in {} s is not a measurement", print(point.size), point.time.count());
  if (sorted.empty() || sorted.front().size == sorted.back().size)
    usage_error("fit: needs at least two different sizes, got {} points", sorted.size());
  return sorted;
}

// best[k][j]: the least error of the first j points in k+1 pieces; cut[k][j]: where the last
// starts.
struct CutTable {
  std::vector<std::vector<double>> best;
  std::vector<std::vector<std::size_t>> cut;
};

constexpr std::size_t kFewestPoints = 3;  // of a piece: a line through two has no error to judge

CutTable best_cuts(const std::vector<Moments>& prefix, int most_pieces) {
  const std::size_t n = prefix.size() - 1;
  const double never = std::numeric_limits<double>::infinity();
  CutTable table;
  for (int k = 0; k < most_pieces; ++k) {
    table.best.emplace_back(n + 1, never);
    table.cut.emplace_back(n + 1, 0);
    for (std::size_t j = 1; j <= n; ++j) {
      if (k == 0) {
        table.best[0][j] = prefix[j].error();
        continue;
      }
      for (std::size_t i = kFewestPoints; i + kFewestPoints <= j; ++i) {
        const double error = table.best[k - 1][i] + (prefix[j] - prefix[i]).error();
        if (error < table.best[k][j]) {
          table.best[k][j] = error;
          table.cut[k][j] = i;
        }
      }
    }
  }
  return table;
}

int pieces_that_pay(const CutTable& table, std::size_t n) {
  int chosen = 0;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < table.best.size(); ++k) {
    const double error = std::max(table.best[k][n], 1e-18);
    const auto points = static_cast<double>(n);
    const double criterion =
        points * std::log(error / points) + 3.0 * static_cast<double>(k + 1) * std::log(points);
    if (criterion < best) {
      best = criterion;
      chosen = static_cast<int>(k);
    }
  }
  return chosen + 1;
}

}  // namespace

LinearFit fit_linear(std::span<const MeasuredPoint> points) {
  const auto sorted = checked_and_sorted(points);
  Moments moments;
  for (const MeasuredPoint& point : sorted)
    moments.add(1, static_cast<long double>(point.size.count), point.time.count());
  LinearFit fit{moments.line(), {}, 0};
  std::tie(fit.residual, fit.relative_residual) =
      residuals(std::span<const MeasuredPoint>(sorted), fit.cost);
  return fit;
}

PiecewiseFit fit_piecewise(std::span<const MeasuredPoint> points, int most_pieces) {
  if (most_pieces < 1) usage_error("fit: pieces: {} must be at least 1", most_pieces);
  const auto sorted = checked_and_sorted(points);
  std::vector<Moments> prefix(1);
  for (const MeasuredPoint& point : sorted) {
    Moments next = prefix.back();
    const double time = point.time.count();
    next.add(1.0L / (static_cast<long double>(time) * time),
             static_cast<long double>(point.size.count), time);
    prefix.push_back(next);
  }
  const CutTable table = best_cuts(prefix, most_pieces);
  std::vector<Curve::Piece> pieces;
  std::size_t end = sorted.size();
  for (int k = pieces_that_pay(table, end) - 1; k >= 0; --k) {
    const std::size_t begin = table.cut[k][end];
    const Bytes from = begin == 0 ? Bytes{0} : sorted[begin].size;
    pieces.push_back({from, (prefix[end] - prefix[begin]).sane_line(), Algorithm::automatic});
    end = begin;
  }
  std::ranges::reverse(pieces);
  PiecewiseFit fit{Curve(std::move(pieces)), {}, 0};
  std::tie(fit.residual, fit.relative_residual) =
      residuals(std::span<const MeasuredPoint>(sorted), fit.curve);
  return fit;
}

}  // namespace riffle
