// What each strategy sends per step: the published formulas beside what its programs add up to.
#pragma once

#include <string>
#include <vector>

namespace riffle {

struct TrafficRow {
  std::string strategy;
  std::string bytes_formula;  // as a multiple of the model's size
  double bytes_expected = 0;
  double bytes_counted = 0;
  std::string messages_formula;
  double messages_expected = 0;
  double messages_counted = 0;
};

// On 4 racks of 4, all all-reduces as rings, a model of 4 layers.
std::vector<TrafficRow> traffic_rows();
// The symbols of the formulas, a line each.
std::vector<std::string> traffic_symbols();

}  // namespace riffle
