// Messages under way.
#pragma once

#include <array>
#include <vector>

#include "riffle/world.h"

namespace riffle::simulator {

// Whose message a flow is; the network only keeps it. `to` is one of these for more than one.
inline constexpr int kFan = -1;
inline constexpr int kBundle = -2;
struct Cargo {
  int collective = 0;
  int round = 0;
  int from = 0;
  int to = 0;
  bool told = false;  // whoever sent it wants to know when its last byte has left
};

struct Flow {
  double tag = 0;  // it ends when its stream has served so many bytes
  int stream = 0;
  int next = -1;
  int path = 0;
  int copies = 1;  // of a fan, or messages of a bundle
  int bundle = -1;
  std::array<Rank, 2> rank{};      // sender, receiver (-1 for a fan)
  std::array<int, 2> port_next{};  // others on the same worker's link
  std::array<int, 2> port_previous{};
  Cargo cargo;
};

// Flows by number; numbers are used again.
class Flows {
 public:
  int add() {
    if (free_ < 0) {
      flows_.emplace_back();
      return static_cast<int>(flows_.size()) - 1;
    }
    const int id = free_;
    free_ = flows_[id].next;
    return id;
  }
  // Ends a flow; the next one of its list.
  int take(int flow) {
    const int next = flows_[flow].next;
    flows_[flow].next = free_;
    free_ = flow;
    return next;
  }
  [[nodiscard]] Flow& operator[](int flow) { return flows_[flow]; }
  [[nodiscard]] const Flow& operator[](int flow) const { return flows_[flow]; }

 private:
  std::vector<Flow> flows_;
  int free_ = -1;
};

}  // namespace riffle::simulator
