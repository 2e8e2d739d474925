#include "simulate/network.h"

namespace riffle::simulator {

Network::Network(const Cluster& cluster, EventQueue& queue)
    : queue_(queue),
      links_(cluster),
      paths_(cluster, links_),
      streams_(links_, paths_, flows_, queue_),
      ports_(links_, paths_, flows_, streams_),
      bundles_(paths_, flows_, streams_, ports_) {}

int Network::with_stream(int path) {
  if (paths_[path].stream < 0) paths_[path].stream = streams_.add_shared(path);
  return path;
}

void Network::start(int path_id, Rank from, Rank to, int copies, double bytes, const Cargo& cargo,
                    double now) {
  const Path& path = paths_[path_id];
  if (path.ports) {
    bundles_.make_way(from, kUp);
    if (to >= 0) bundles_.make_way(to, kDown);
  }
  const int id = flows_.add();
  Flow& flow = flows_[id];
  flow.bundle = -1;
  flow.path = path_id;
  flow.copies = copies;
  flow.rank = {from, to};
  flow.cargo = cargo;
  flow.stream = -1;
  bool single = false;
  if (path.ports) {
    single = ports_.enter(id, kUp, now);
    if (to >= 0 && ports_.enter(id, kDown, now)) single = true;
  }
  const int stream = single ? streams_.add_single(path_id, from, to, copies, now) : path.stream;
  streams_.advance(stream, now);
  // A stream of a fan's own counts each copy; in the class's stream the fan is one flow.
  streams_.put(stream, id, streams_[stream].served + (single ? bytes : bytes * copies));
  if (path.ports) streams_.limit_safe(stream, ports_.safe_rate(id));
  streams_.weigh(stream, single ? copies : 1, now);
}

int Network::leave(int id, const Stream& stream) {
  const Flow& flow = flows_[id];
  if (flow.bundle >= 0) {
    bundles_.end(id);
    return flow.copies;
  }
  if (paths_[stream.path].ports) {
    ports_.leave(id, kUp);
    if (flow.rank[kDown] >= 0) ports_.leave(id, kDown);
  }
  return stream.single ? flow.copies : 1;
}

void Network::stream_done(int id, double now) {
  if (!streams_.at_end(id, now)) return;
  const Stream& stream = streams_[id];
  const double arrival = now + paths_[stream.path].latency;
  int gone = 0;
  for (int first = streams_.pop_ended(id, now); first >= 0; first = streams_.pop_ended(id, now)) {
    bool told = false;
    for (int flow = first; flow >= 0; flow = flows_[flow].next) {
      gone += leave(flow, stream);
      told = told || flows_[flow].cargo.told;
    }
    if (told) queue_.push(now, Happening::left, first);
    queue_.push(arrival, Happening::delivery, first);
  }
  streams_.popped(id, gone, now);
}

void Network::settle(double now) {
  while (!streams_.rates().settled()) {
    streams_.update_rates(now, unsafe_);
    for (const int id : unsafe_)
      if (streams_[id].weight > 0) ports_.relieve(id, now);
    unsafe_.clear();
  }
  streams_.schedule_ends(now);
}

void Network::declare_variable(int link) {
  links_.set_variable(link);
  if (!links_.is_worker(link)) return;
  paths_.set_apart(link / 2);
  ports_.count_classes();
  bundles_.count_classes();
}

void Network::set_bandwidth(int link, double bytes_per_second) {
  links_.set_capacity(link, bytes_per_second);
  streams_.rates().link_changed(link);
}

void Network::set_latency(int link_up, double seconds) {
  paths_.add_latency(link_up, (seconds - links_.latency(link_up)) / 2);
  links_.set_latency(link_up, seconds);
}

}  // namespace riffle::simulator
