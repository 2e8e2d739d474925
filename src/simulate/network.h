// The fluid network: flows that share links max-min fairly, exactly, at tens of nanoseconds each.
//
// Max-min: no flow could be faster without making a flow slower that is no faster than it. A flow
// crosses the sender's link up, the uplinks of the domains it leaves and enters, and the receiver's
// link down; every link is full duplex. It sends from the moment it starts; its last byte arrives
// one path latency after it left.
//
// Four observations keep it cheap, each in a file of its own.
//  - streams.h: flows between the same two places (class of sender, class of receiver) get the same
//    rate as long as they have their workers' links for themselves. They form one stream that
//    serves all of them alike. Starting and ending a flow then costs no work per other flow, and
//    flows that start together end together, as one event.
//  - ports.h: flows that meet on a worker's link stay in their streams as long as it limits none.
//  - fair_rates.h: when flows come and go, only the links whose level changes are computed again.
//  - bundles.h: workers that move in step send one flow.
#pragma once

#include "simulate/bundles.h"

namespace riffle::simulator {

class Network {
 public:
  Network(const Cluster& cluster, EventQueue& queue);

  // What flows from one worker to another have in common: a number for send().
  int path(Rank from, Rank to) { return with_stream(paths_.between(from, to)); }
  // The same for fan().
  int fan_path(Rank from, Rank to) { return with_stream(paths_.fan(from, to)); }
  // Same domain, same link: no path tells such workers apart.
  [[nodiscard]] bool alike(Rank a, Rank b) const {
    return paths_.class_of(a) == paths_.class_of(b);
  }
  // Workers that are alike.
  [[nodiscard]] int class_size(Rank rank) const { return paths_.class_size(rank); }

  void send(int path, Rank from, Rank to, double bytes, const Cargo& cargo, double now) {
    start(path, from, to, 1, bytes, cargo, now);
  }
  // A fan: `copies` messages of `bytes` each, from a worker to others of its own class at once,
  // share the sender's link. The receivers' links are equal to it, and a round of fans never needs
  // more of them; other traffic there is not slowed by a fan.
  void fan(int path, Rank from, int copies, double bytes, const Cargo& cargo, double now) {
    start(path, from, -1, copies, bytes, cargo, now);
  }
  // False where somebody is on the workers' links already: then send the messages one by one.
  bool bundle(int path, const Bundle& bundle, double bytes, const Cargo& cargo, double now) {
    return bundles_.start(path, bundle, bytes, cargo, now);
  }

  // A stream_done event. Pushes a delivery for the flows that left.
  void stream_done(int stream, double now);
  // To be called when everything that happens at `now` has happened: rates change only then.
  void settle(double now);

  // The flows of a delivery, or that have left: a list. Taking one out of it ends it.
  [[nodiscard]] const Cargo& cargo(int flow) const { return flows_[flow].cargo; }
  [[nodiscard]] int next(int flow) const { return flows_[flow].next; }
  int take(int flow) { return flows_.take(flow); }

  [[nodiscard]] const Links& links() const { return links_; }
  // Links that will change must be known before the first path is asked for.
  void declare_variable(int link);
  void set_bandwidth(int link, double bytes_per_second);
  void set_latency(int link_up, double seconds);

  // How often a stream was given another rate.
  [[nodiscard]] std::int64_t rate_changes() const { return streams_.rate_changes(); }

 private:
  int with_stream(int path);
  // `to` is below zero for a fan.
  void start(int path, Rank from, Rank to, int copies, double bytes, const Cargo& cargo,
             double now);
  // A flow has sent its last byte. What it weighed.
  int leave(int flow, const Stream& stream);

  EventQueue& queue_;
  Links links_;
  Paths paths_;
  Flows flows_;
  Streams streams_;
  Ports ports_;
  Bundles bundles_;
  std::vector<int> unsafe_;  // streams; scratch of settle
};

}  // namespace riffle::simulator
