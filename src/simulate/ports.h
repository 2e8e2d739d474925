// The workers' own links: which flows are on them, and when they get crowded.
//
// Flows that meet on a worker's link stay in their shared streams as long as none gets more than an
// equal part of it: then the link limits nobody. As soon as one does, the link is *crowded*: its
// flows leave their streams and become streams of their own, which know that link.
#pragma once

#include <array>
#include <vector>

#include "simulate/streams.h"

namespace riffle::simulator {

class Ports {
 public:
  Ports(const Links& links, const Paths& paths, Flows& flows, Streams& streams);

  // A flow comes to the link of its sender (kUp) or receiver (kDown). True when it must be a stream
  // of its own.
  bool enter(int flow, int way, double now);
  void leave(int flow, int way);
  // The rate up to which a flow crowds neither of its links.
  [[nodiscard]] double safe_rate(int flow) const;
  // A stream has become faster than is safe: crowd the links where it matters, or find that flows
  // have left them meanwhile.
  void relieve(int stream, double now);

  // Flows on the links of all workers of a rank's class, one way, without bundles.
  [[nodiscard]] int flows_of_class(Rank rank, int way) const {
    return class_flows_[paths_.class_of(rank)][way];
  }
  // Classes have changed; nothing is under way.
  void count_classes() { class_flows_.resize(static_cast<std::size_t>(paths_.classes())); }

 private:
  // What a worker's link needs for every flow, apart from the rest: it stays in the cache.
  struct Port {
    double capacity = 0;
    int first_flow = -1;  // the flows on it
    int flows = 0;
    bool crowded = false;  // all of them are streams of their own
    [[nodiscard]] double part() const { return flows < 2 || crowded ? kNever : capacity / flows; }
  };

  void crowd(int link, double now);
  void crowd_out(int flow, double now);

  const Links& links_;
  const Paths& paths_;
  Flows& flows_;
  Streams& streams_;
  std::vector<Port> ports_;
  std::vector<std::array<int, 2>> class_flows_;
  std::vector<int> scratch_;
};

}  // namespace riffle::simulator
