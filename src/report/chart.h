// Curves drawn with characters, both axes logarithmic: scaling curves.
#pragma once

#include <string>
#include <vector>

namespace riffle::report {

struct Curves {
  std::string x_name;
  std::string y_name;
  std::vector<double> x;  // ascending, above zero
  struct Series {
    std::string name;
    std::vector<double> y;  // one for each x; not above zero: no point there
  };
  std::vector<Series> series;
};

// Each curve has a letter of its own; where curves meet, the first one is seen.
std::string draw_chart(const Curves& curves, int width = 100, int height = 20);

}  // namespace riffle::report
