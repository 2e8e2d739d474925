// What `riffle probe` prints: a page for people, and a document for programs.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "measure/doctor.h"

namespace riffle::cli {

// What rank 0 knows when all is measured.
struct Probed {
  measure::Network network;  // in times and rates of the true cluster
  std::vector<measure::HostFacts> facts;
  std::vector<std::string> advice;
  std::string launcher;
  double dilate = 1;  // of the lab, where it is one
  double shrink = 1;
  Seconds took{};
};

std::string probe_page(const Probed& probed, bool colour);
Json probe_json(const Probed& probed);

}  // namespace riffle::cli
