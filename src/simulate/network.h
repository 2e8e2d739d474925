// The fluid network: flows that share links max-min fairly, exactly, at tens of nanoseconds each.
//
// Max-min: no flow could be faster without making a flow slower that is no faster than it. A flow
// crosses the sender's link up, the uplinks of the domains it leaves and enters, and the receiver's
// link down; every link is full duplex. It sends from the moment it starts; its last byte arrives
// one path latency after it left.
//
// Three observations keep it cheap.
//  - Flows between the same two places (class of sender, class of receiver) get the same rate as
//    long as they have their workers' links for themselves. They form one *stream* that serves all
//    of them alike: a flow ends when the stream has served each of its flows the flow's bytes more
//    than at its start. Starting and ending a flow then costs no work per other flow, and flows
//    that start together end together, as one event.
//  - Flows that meet on a worker's link stay in their streams as long as none gets more than an
//    equal part of it: then the link limits nobody. As soon as one does, the link is *crowded*:
//    its flows leave their streams and become streams of their own, which know that link.
//  - When flows come and go, only the links whose level changes are computed again. A link's level
//    is what it offers a flow that is limited nowhere else; rates are the least of the levels on
//    the way. Recomputing a link from its neighbours' levels until nothing changes ends at the
//    max-min rates from any start: the link with the least equal share is right at once and for
//    good, then the next.
#pragma once

#include <array>
#include <limits>
#include <unordered_map>
#include <vector>

#include "riffle/cluster.h"
#include "simulate/event_queue.h"

namespace riffle {

class Network {
 public:
  // Whose message a flow is; the network only keeps it. `to` is one of these for more than one.
  static constexpr int kFan = -1;
  static constexpr int kBundle = -2;
  struct Cargo {
    int collective = 0;
    int round = 0;
    int from = 0;
    int to = 0;
  };

  Network(const Cluster& cluster, EventQueue& queue);

  // What flows from one worker to another have in common: a number for send().
  int path(Rank from, Rank to);
  // A fan: equal messages from a worker to others of its own class at once.
  int fan_path(Rank from, Rank to);
  // Same domain, same link: no path tells such workers apart.
  [[nodiscard]] bool alike(Rank a, Rank b) const { return class_of_[a] == class_of_[b]; }

  void send(int path, Rank from, Rank to, double bytes, const Cargo& cargo, double now) {
    start(path, from, to, 1, bytes, cargo, now);
  }
  // `copies` messages of `bytes` each share the sender's link. The receivers' links are equal to
  // it, and a round of fans never needs more of them; other traffic there is not slowed by a fan.
  void fan(int path, Rank from, int copies, double bytes, const Cargo& cargo, double now) {
    start(path, from, -1, copies, bytes, cargo, now);
  }

  // One message each from all workers of a class at once, to all workers of a class, one each, over
  // one path. As long as nobody else uses those workers' links they are one flow; who comes
  // dissolves it. False where somebody is there already: then send them one by one.
  struct Bundle {
    const Rank* ranks = nullptr;     // of a group's members; all pointers live as long as the flow
    const int* receivers = nullptr;  // members that hear from `first`, `first` + 1, ...
    int first = 0;                   // sending member
    int count = 0;
  };
  bool bundle(int path, const Bundle& bundle, double bytes, const Cargo& cargo, double now);
  [[nodiscard]] int class_size(Rank rank) const { return class_size_[class_of_[rank]]; }

  // A stream_done event. Pushes a delivery for the flows that left.
  void stream_done(int stream, double now);
  // To be called when everything that happens at `now` has happened: rates change only then.
  void settle(double now);

  // The flows of a delivery: a list. Taking one out of it ends it.
  [[nodiscard]] const Cargo& cargo(int flow) const { return flows_[flow].cargo; }
  int take(int flow) {
    const int next = flows_[flow].next;
    flows_[flow].next = free_flow_;
    free_flow_ = flow;
    return next;
  }

  // Links that will change must be known before the first path is asked for.
  static constexpr int kUp = 0;
  static constexpr int kDown = 1;
  [[nodiscard]] static int worker_link(Rank rank, int way) { return 2 * rank + way; }
  [[nodiscard]] int domain_link(int domain, int way) const { return 2 * (workers_ + domain) + way; }
  void declare_variable(int link);
  [[nodiscard]] double bandwidth(int link) const { return links_[link].capacity; }
  void set_bandwidth(int link, double bytes_per_second);
  // Half of this is added to a path for each end it crosses.
  void set_latency(int link_up, double seconds);

  // How often a stream was given another rate.
  [[nodiscard]] std::int64_t rate_changes() const { return rate_changes_; }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr int kMostLinks = 10;  // of a path: four levels of domains and the workers' own

  struct LinkUse {
    int link = 0;
    int position = 0;  // in the link's list of streams
  };
  struct Path {
    double latency = 0;
    double cap = 0;  // what the workers' own links allow
    int stream = 0;
    bool ports = true;        // it uses the workers' links (a measured pair is a wire of its own)
    std::vector<int> shared;  // uplinks on the way
    std::vector<int> latency_links;  // links (their way up) that add half their latency
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
  struct Entry {
    double tag = 0;
    int first = 0;  // flows that end together
    int last = 0;
    int flows = 0;
  };
  struct Stream {
    double rate = 0;    // of each flow
    double served = 0;  // bytes, of each flow, up to `last`
    double last = 0;
    double scheduled = kNever;  // the event that counts; earlier ones are ignored
    double cap = kNever;
    double safe = kNever;  // up to this rate its flows crowd no worker's link
    int weight = 0;        // flows as links count them
    int path = 0;
    int uses = 0;
    bool single = false;
    bool attached = false;
    bool touched = false;
    bool changed = false;
    std::array<LinkUse, kMostLinks> use{};
    std::vector<Entry> entries;  // ascending tags, from `head` on
    std::size_t head = 0;
  };
  // A stream on a link, with what the link's level depends on.
  struct Member {
    double cap = 0;
    double weight = 0;
    int stream = 0;
    int which = 0;   // of the stream's uses
    int other = -1;  // the stream's other link, where it has two
  };
  struct LinkState {
    double capacity = kNever;
    double latency = 0;
    bool variable = false;
    bool dirty = false;
    std::vector<Member> streams;
  };
  // What a worker's own link needs for every flow, apart from the rest: it stays in the cache.
  struct Port {
    double capacity = 0;
    int first_flow = -1;  // the flows on it
    int flows = 0;
    bool crowded = false;  // all of them are streams of their own
    [[nodiscard]] double part() const { return flows < 2 || crowded ? kNever : capacity / flows; }
  };

  // What is on the links of a class's workers, one way.
  struct ClassUse {
    int flows = 0;    // without bundles
    int bundle = -1;  // the flow of one that is
  };

  int new_path(Rank from, Rank to);
  void count_classes();
  void add_tree_links(Path& path, Rank from, Rank to) const;
  void start(int path, Rank from, Rank to, int copies, double bytes, const Cargo& cargo,
             double now);
  int new_flow();
  int new_single(int path, Rank from, Rank to, int copies, double now);
  void enqueue(int stream, int flow, double tag);
  bool enter_port(int flow, int way, double now);
  void leave_port(int flow, int way);
  void crowd(int port, double now);
  [[nodiscard]] double safe_rate(int flow) const;
  void relieve(int stream, double now);
  void crowd_out(int flow, double now);
  void remove_from_stream(int flow, double now);
  void unlink(int flow);
  ClassUse& use_of(Rank rank, int way) { return class_use_[class_of_[rank]][way]; }
  void dissolve(Rank rank, int way) {
    if (const int flow = use_of(rank, way).bundle; flow >= 0) dissolve_bundle(flow);
  }
  void dissolve_bundle(int flow);
  void end_bundle(int flow);
  void attach(int stream);
  void detach(int stream);
  void weigh(int stream, int flows, double now);
  void advance(Stream& stream, double now) const;
  void touch(int stream);
  void mark_dirty(int link);
  void resolve(double now);
  [[nodiscard]] double fair_level(int link);
  [[nodiscard]] double offer_elsewhere(const Member& member) const;
  void spread(int link, double before, double after);
  void mark_changed(int stream);
  void update_rate(int stream, double now);
  void reschedule(int stream, double now);

  const Cluster& cluster_;
  EventQueue& queue_;
  int workers_;
  std::vector<int> class_of_;
  int classes_ = 0;
  std::vector<int> class_size_;
  std::vector<std::array<ClassUse, 2>> class_use_;
  std::vector<Bundle> bundles_;
  std::vector<int> free_bundles_;
  std::unordered_map<std::uint64_t, int> path_of_;
  std::vector<Path> paths_;
  std::vector<Flow> flows_;
  std::vector<Stream> streams_;
  std::vector<double> rate_;  // of attached streams, once more: looked up often
  std::vector<LinkState> links_;
  std::vector<double> level_;  // of each link
  std::vector<Port> ports_;    // of links below 2 * workers
  int free_flow_ = -1;
  std::vector<int> free_singles_;
  std::vector<int> dirty_;
  std::vector<int> changed_;
  std::vector<int> touched_;
  std::vector<int> tight_;  // streams above their safe rate
  std::vector<int> scratch_;
  std::int64_t rate_changes_ = 0;
  std::vector<std::pair<double, double>> offers_;  // scratch of fair_level
};

}  // namespace riffle
