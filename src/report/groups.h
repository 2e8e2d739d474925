// Who meets whom in a step, drawn for a terminal: the workers of each rack in a row, those of one
// group with one letter.
#pragma once

#include <string>
#include <vector>

#include "riffle/program.h"

namespace riffle::report {

struct GroupStyle {
  bool colour = false;
  int width = 100;  // columns of all pictures together
  int most = 256;   // workers drawn, the first ones
};

struct GroupPicture {
  struct Line {
    std::string text;  // without a line break
    int width = 0;     // as it is seen
  };
  std::vector<Line> lines;  // the title first
  [[nodiscard]] int width() const;
};

// The exchanges of one bucket. A dot is a worker without company; a star marks who also takes part
// in an exchange that spans several steps. A shift names the peer that each hears from.
GroupPicture draw_groups(const std::string& title, const Program& program, int bucket,
                         const World& world, const GroupStyle& style);

// Pictures side by side, as many in a row as fit.
std::string beside(const std::vector<GroupPicture>& pictures, const GroupStyle& style);

}  // namespace riffle::report
