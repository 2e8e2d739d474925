#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace riffle::report {
namespace {

constexpr int kMargin = 9;  // for the labels of the y axis

struct Scale {
  double low = 0;  // logarithms
  double high = 1;
  int cells = 1;
  [[nodiscard]] int cell(double value) const {
    const double share = (std::log(value) - low) / std::max(high - low, 1e-9);
    return std::clamp(static_cast<int>(std::lround(share * (cells - 1))), 0, cells - 1);
  }
  [[nodiscard]] double value(int at) const {
    return std::exp(low + (high - low) * at / std::max(cells - 1, 1));
  }
};

Scale y_scale(const Curves& curves, int height) {
  Scale scale{1e300, -1e300, height};
  for (const auto& series : curves.series)
    for (const double y : series.y) {
      if (!(y > 0)) continue;
      scale.low = std::min(scale.low, std::log(y));
      scale.high = std::max(scale.high, std::log(y));
    }
  return scale;
}

// Three digits, but whole numbers whole: 1961, not 1.96e+03.
std::string label_of(double value) {
  return value >= 1000 && value < 1e6 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

using Canvas = std::vector<std::string>;  // row 0 is the bottom

void put(Canvas& canvas, int row, int column, char mark, bool point) {
  char& cell = canvas[row][column];
  if (cell == ' ' || (point && cell == '.')) cell = mark;
}

// A point as its letter, the way to the next one as dots.
void draw_series(Canvas& canvas, const Curves& curves, const Curves::Series& series, char letter,
                 const Scale& xs, const Scale& ys) {
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    if (!(series.y[i] > 0)) continue;
    const int column = xs.cell(curves.x[i]);
    const int row = ys.cell(series.y[i]);
    put(canvas, row, column, letter, true);
    if (i + 1 == series.y.size() || !(series.y[i + 1] > 0)) continue;
    const int next_column = xs.cell(curves.x[i + 1]);
    const int next_row = ys.cell(series.y[i + 1]);
    for (int c = column + 1; c < next_column; ++c) {
      const double share = static_cast<double>(c - column) / (next_column - column);
      put(canvas, static_cast<int>(std::lround(row + share * (next_row - row))), c, '.', false);
    }
  }
}

std::string x_labels(const Curves& curves, const Scale& xs) {
  std::string line(static_cast<std::size_t>(xs.cells), ' ');
  int free = 0;
  for (const double x : curves.x) {
    const std::string label = fmt::format("{:g}", x);
    const int length = static_cast<int>(label.size());
    const int at = std::clamp(xs.cell(x) - length / 2, 0, xs.cells - length);
    if (at < free) continue;
    line.replace(static_cast<std::size_t>(at), label.size(), label);
    free = at + static_cast<int>(label.size()) + 1;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// With the last value: curves that others cover are told apart by it.
std::string key_line(const Curves& curves, std::size_t which, char letter) {
  const Curves::Series& series = curves.series[which];
  std::string line = fmt::format("{:>{}} {}", letter, kMargin - 2, series.name);
  for (std::size_t i = series.y.size(); i-- > 0;)
    if (series.y[i] > 0)
      return line + fmt::format(": {} at {:g}\n", label_of(series.y[i]), curves.x[i]);
  return line + ": nowhere\n";
}

}  // namespace

std::string draw_chart(const Curves& curves, int width, int height) {
  const Scale ys = y_scale(curves, height);
  if (curves.x.empty() || ys.low > ys.high) return "nothing to draw\n";
  const Scale xs{std::log(curves.x.front()), std::log(curves.x.back()),
                 std::max(width - kMargin - 2, 10)};
  Canvas canvas(static_cast<std::size_t>(height),
                std::string(static_cast<std::size_t>(xs.cells), ' '));
  const auto letter = [](std::size_t i) {
    return static_cast<char>(i < 26 ? 'a' + i : 'A' + (i - 26) % 26);
  };
  for (std::size_t i = 0; i < curves.series.size(); ++i)
    draw_series(canvas, curves, curves.series[i], letter(i), xs, ys);
  std::string text = fmt::format("{} over {}\n", curves.y_name, curves.x_name);
  for (int row = height - 1; row >= 0; --row) {
    const bool labelled = row % 4 == 0 || row == height - 1;
    const std::string label = labelled ? label_of(ys.value(row)) : "";
    std::string line = canvas[row];
    line.erase(line.find_last_not_of(' ') + 1);
    text += fmt::format("{:>{}} │{}\n", label, kMargin - 2, line);
  }
  std::string rule;
  for (int i = 0; i < xs.cells; ++i) rule += "─";
  text += fmt::format("{:>{}} └{}\n{:>{}}  {}\n\n", "", kMargin - 2, rule, "", kMargin - 2,
                      x_labels(curves, xs));
  for (std::size_t i = 0; i < curves.series.size(); ++i) text += key_line(curves, i, letter(i));
  return text;
}

}  // namespace riffle::report
