// Messages of workers that move in step, as one flow.
#pragma once

#include <array>
#include <vector>

#include "simulate/ports.h"

namespace riffle::simulator {

// One message each from all workers of a class at once, to all workers of a class, one each, over
// one path.
struct Bundle {
  const Rank* ranks = nullptr;     // of a group's members; all pointers live as long as the flow
  const int* receivers = nullptr;  // members that hear from `first`, `first` + 1, ...
  int first = 0;                   // sending member
  int count = 0;
};

class Bundles {
 public:
  Bundles(const Paths& paths, Flows& flows, Streams& streams, Ports& ports)
      : paths_(paths), flows_(flows), streams_(streams), ports_(ports) {
    count_classes();
  }

  // As long as nobody else uses those workers' links they are one flow. False where somebody is
  // there already.
  bool start(int path, const Bundle& bundle, double bytes, const Cargo& cargo, double now);
  void end(int flow);
  // Somebody comes to a worker's link: a bundle that is there becomes its messages.
  void make_way(Rank rank, int way) {
    if (const int flow = on(rank, way); flow >= 0) dissolve(flow);
  }

  // Classes have changed; nothing is under way.
  void count_classes() { on_class_.resize(static_cast<std::size_t>(paths_.classes()), {-1, -1}); }

 private:
  // The bundle's flow on the links of a rank's class, one way; -1 where there is none.
  int& on(Rank rank, int way) { return on_class_[paths_.class_of(rank)][way]; }
  void dissolve(int flow);

  const Paths& paths_;
  Flows& flows_;
  Streams& streams_;
  Ports& ports_;
  std::vector<std::array<int, 2>> on_class_;
  std::vector<Bundle> bundles_;
  std::vector<int> free_;
};

}  // namespace riffle::simulator
