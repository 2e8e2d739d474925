// Max-min fair rates: what each stream may send when all share the links on their way.
//
// A link's level is what it offers a flow that is limited nowhere else; the rate of a stream's
// flows is the least of the levels on its way. When streams come and go, only links whose level
// changes are computed again. Recomputing a link from its neighbours' levels until nothing changes
// ends at the max-min rates from any start: the link with the least equal share is right at once
// and for good, then the next.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "simulate/links.h"

namespace riffle::simulator {

class FairRates {
 public:
  explicit FairRates(const Links& links)
      : links_(links), on_(links.count()), level_(links.count(), kNever) {}

  // One more stream, numbered from zero.
  void add() {
    routes_.emplace_back();
    rate_.push_back(0);
  }
  // Where a stream that is not attached goes, and the most it can take.
  void set_route(int stream, double cap, std::span<const int> links);
  [[nodiscard]] double cap(int stream) const { return routes_[stream].cap; }
  // Some link on its way is shared; the rate of others is their cap for good.
  [[nodiscard]] bool shares(int stream) const { return routes_[stream].uses > 0; }
  // On its links: it shares them and has flows.
  [[nodiscard]] bool attached(int stream) const { return routes_[stream].attached; }

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
    Route& route = routes_[stream];
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
      routes_[stream].asked = false;
      if (!routes_[stream].attached) continue;
      rate_[stream] = least_level(routes_[stream]);
      tell(stream, rate_[stream]);
    }
    asked_.clear();
  }

 private:
  struct Use {
    int link = 0;
    int position = 0;  // in the link's list of streams
  };
  struct Route {
    double cap = kNever;
    int uses = 0;
    bool attached = false;
    bool asked = false;
    std::array<Use, kMostLinks> use{};
  };
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
  std::vector<Route> routes_;
  std::vector<double> rate_;  // of attached streams
  std::vector<OnLink> on_;
  std::vector<double> level_;                      // of each link
  std::vector<int> dirty_;                         // links
  std::vector<int> asked_;                         // streams
  std::vector<std::pair<double, double>> offers_;  // scratch of fair_level
};

}  // namespace riffle::simulator
