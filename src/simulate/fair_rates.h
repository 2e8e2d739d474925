// Max-min fair rates: what each stream may send when all share the links on their way.
//
// A link's level is what it offers a flow that is limited nowhere else; the rate of a stream's
// flows is the least of the levels on its way. When streams come and go, only links whose level
// changes are computed again. Recomputing a link from its neighbours' levels until nothing changes
// ends at the max-min rates from any start: the link with the least equal share is right at once
// and for good, then the next.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "simulate/stream.h"

namespace riffle::simulator {

class FairRates {
 public:
  FairRates(const Links& links, std::vector<Stream>& streams)
      : links_(links), streams_(streams), on_(links.count()), level_(links.count(), kNever) {}

  // Where a stream goes that is not attached.
  void set_route(int stream, double cap, std::span<const int> links);
  // How many flows the links count. True where the stream is attached by it: its rate is zero until
  // it is known.
  bool weigh(int stream, int flows);

  void link_changed(int link) {
    if (on_[link].dirty) return;
    on_[link].dirty = true;
    dirty_.push_back(link);
  }
  // Asks for the stream's rate once more.
  void ask(int stream) {
    Route& route = streams_[stream].route;
    if (route.asked) return;
    route.asked = true;
    asked_.push_back(stream);
  }

  [[nodiscard]] bool settled() const { return dirty_.empty() && asked_.empty(); }
  // Computes levels, then calls tell(stream, rate) for every stream whose rate may have changed.
  template <typename Tell>
  void settle(const Tell& tell) {
    settle_levels();
    for (const int stream : asked_) {
      Route& route = streams_[stream].route;
      route.asked = false;
      if (!route.attached) continue;
      rate_[stream] = least_level(route);
      tell(stream, rate_[stream]);
    }
    asked_.clear();
  }

 private:
  // A stream on a link, with what the link's level depends on.
  struct Member {
    double cap = 0;
    double weight = 0;
    int stream = 0;
    int which = 0;   // of the stream's uses
    int other = -1;  // the stream's other link, where it has two
  };
  struct OnLink {
    bool dirty = false;
    std::vector<Member> streams;
  };

  void attach(int stream, int flows);
  void detach(int stream);
  void settle_levels();
  [[nodiscard]] double fair_level(int link);
  [[nodiscard]] double offer_elsewhere(const Member& member) const;
  void spread(int link, double before, double after);
  [[nodiscard]] double least_level(const Route& route) const {
    double rate = route.cap;
    for (int u = 0; u < route.uses; ++u) rate = std::min(rate, level_[route.use[u].link]);
    return rate;
  }

  const Links& links_;
  std::vector<Stream>& streams_;
  std::vector<double> rate_;  // of streams, once more: looked up often
  std::vector<OnLink> on_;
  std::vector<double> level_;                      // of each link
  std::vector<int> dirty_;                         // links
  std::vector<int> asked_;                         // streams
  std::vector<std::pair<double, double>> offers_;  // scratch of fair_level
};

}  // namespace riffle::simulator
