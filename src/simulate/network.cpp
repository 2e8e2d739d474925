#include "simulate/network.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "riffle/error.h"

namespace riffle {
namespace {

// What rates that fill a worker's link exactly may exceed it by.
constexpr double kSlack = 1e-12;

}  // namespace

Network::Network(const Cluster& cluster, EventQueue& queue)
    : cluster_(cluster), queue_(queue), workers_(cluster.size()) {
  links_.resize(2 * (cluster.workers.size() + cluster.domains.size()));
  level_.assign(links_.size(), kNever);
  const auto set = [&](int up, const Link& link) {
    for (const int way : {kUp, kDown}) {
      links_[up + way].capacity = link.bandwidth.bytes_per_second;
      links_[up + way].latency = link.latency.count();
    }
  };
  // Workers of one class have the same place and the same link.
  std::map<std::tuple<int, double, double>, int> classes;
  for (Rank rank = 0; rank < workers_; ++rank) {
    const WorkerSpec& worker = cluster.workers[rank];
    set(worker_link(rank, kUp), worker.link);
    const std::tuple key(worker.domain, worker.link.latency.count(),
                         worker.link.bandwidth.bytes_per_second);
    class_of_.push_back(classes.emplace(key, static_cast<int>(classes.size())).first->second);
  }
  ports_.resize(2 * cluster.workers.size());
  // A little more than they have: rates that fill a link exactly do not crowd it.
  for (int link = 0; link < 2 * workers_; ++link)
    ports_[link].capacity = links_[link].capacity * (1 + kSlack);
  for (std::size_t d = 1; d < cluster.domains.size(); ++d)
    set(domain_link(static_cast<int>(d), kUp), cluster.domains[d].uplink);
  classes_ = static_cast<int>(classes.size());
  // Measured pairs have paths of their own; such workers cannot share a class's.
  for (const PairLink& pair : cluster.pairs) {
    class_of_[pair.from] = classes_++;
    class_of_[pair.to] = classes_++;
  }
  count_classes();
}

void Network::count_classes() {
  class_use_.assign(static_cast<std::size_t>(classes_), {});
  class_size_.assign(static_cast<std::size_t>(classes_), 0);
  for (const int each : class_of_) ++class_size_[each];
}

void Network::declare_variable(int link) {
  links_[link].variable = true;
  if (link >= 2 * workers_) return;
  class_of_[link / 2] = classes_++;
  count_classes();
}

int Network::path(Rank from, Rank to) {
  const std::uint64_t key =
      (static_cast<std::uint64_t>(class_of_[from]) << 32) | static_cast<unsigned>(class_of_[to]);
  const auto [found, fresh] = path_of_.try_emplace(key, 0);
  if (fresh) found->second = new_path(from, to);
  return found->second;
}

int Network::fan_path(Rank from, Rank to) {
  const std::uint64_t key = (std::uint64_t{1} << 63) | static_cast<unsigned>(class_of_[from]);
  const auto [found, fresh] = path_of_.try_emplace(key, 0);
  if (fresh) found->second = new_path(from, to);
  return found->second;
}

int Network::new_path(Rank from, Rank to) {
  Path path;
  path.stream = static_cast<int>(streams_.size());
  const auto pair = std::ranges::find_if(
      cluster_.pairs, [&](const PairLink& p) { return p.from == from && p.to == to; });
  if (pair != cluster_.pairs.end()) {
    path.ports = false;
    path.latency = pair->link.latency.count();
    path.cap = pair->link.bandwidth.bytes_per_second;
  } else {
    add_tree_links(path, from, to);
  }

  Stream stream;
  stream.path = static_cast<int>(paths_.size());
  stream.cap = path.cap;
  stream.uses = static_cast<int>(path.shared.size());
  if (stream.uses + 2 > kMostLinks)
    usage_error("cluster: the path from worker {} to worker {} crosses more than {} links", from,
                to, kMostLinks);
  for (int i = 0; i < stream.uses; ++i) stream.use[i].link = path.shared[i];
  if (stream.uses == 0) stream.rate = stream.cap;  // for good: nothing is shared
  streams_.push_back(std::move(stream));
  rate_.push_back(0);
  paths_.push_back(std::move(path));
  return static_cast<int>(paths_.size()) - 1;
}

void Network::add_tree_links(Path& path, Rank from, Rank to) const {
  const int up = worker_link(from, kUp);
  const int down = worker_link(to, kDown);
  path.latency_links = {up, worker_link(to, kUp)};
  path.cap = std::min(links_[up].capacity, links_[down].capacity);
  int a = cluster_.workers[from].domain;
  int b = cluster_.workers[to].domain;
  // Parents come before children, so the deeper index is never an ancestor of the other.
  while (a != b) {
    const bool leaving = a > b;
    int& deeper = leaving ? a : b;
    const int link = domain_link(deeper, leaving ? kUp : kDown);
    path.shared.push_back(link);
    path.latency_links.push_back(domain_link(deeper, kUp));
    deeper = cluster_.domains[deeper].parent;
  }
  for (const int link : path.latency_links) path.latency += links_[link].latency / 2;
}

int Network::new_flow() {
  if (free_flow_ < 0) {
    flows_.emplace_back();
    return static_cast<int>(flows_.size()) - 1;
  }
  const int id = free_flow_;
  free_flow_ = flows_[id].next;
  return id;
}

void Network::start(int path_id, Rank from, Rank to, int copies, double bytes, const Cargo& cargo,
                    double now) {
  if (paths_[path_id].ports) {
    dissolve(from, kUp);
    if (to >= 0) dissolve(to, kDown);
  }
  const int id = new_flow();
  Flow& flow = flows_[id];
  flow.bundle = -1;
  flow.path = path_id;
  flow.copies = copies;
  flow.rank = {from, to};
  flow.cargo = cargo;
  flow.stream = -1;
  const Path& path = paths_[path_id];
  bool single = false;
  if (path.ports) {
    single = enter_port(id, kUp, now);
    if (to >= 0 && enter_port(id, kDown, now)) single = true;
  }
  const int stream_id = single ? new_single(path_id, from, to, copies, now) : path.stream;
  Stream& stream = streams_[stream_id];
  advance(stream, now);
  // A stream of a fan's own counts each copy; in the class's stream the fan is one flow.
  enqueue(stream_id, id, stream.served + (single ? bytes : bytes * copies));
  if (path.ports) stream.safe = std::min(stream.safe, safe_rate(id));
  weigh(stream_id, single ? copies : 1, now);
}

// True when the flow must be a stream of its own.
bool Network::enter_port(int id, int way, double now) {
  Flow& flow = flows_[id];
  const int link = worker_link(flow.rank[way], way);
  Port& port = ports_[link];
  ++class_use_[class_of_[flow.rank[way]]][way].flows;
  flow.port_previous[way] = -1;
  flow.port_next[way] = port.first_flow;
  if (port.first_flow >= 0) flows_[port.first_flow].port_previous[way] = id;
  port.first_flow = id;
  ++port.flows;
  if (port.crowded) return true;
  bool full = links_[link].variable;
  if (port.flows == 1 && !full) return false;
  // Flows that share no uplink have a rate already: the whole of what they get here. Of others it
  // is known only when the rates are settled.
  const double part = port.part();
  full = full || (paths_[flow.path].shared.empty() && paths_[flow.path].cap > part);
  for (int other = flow.port_next[way]; other >= 0; other = flows_[other].port_next[way]) {
    Stream& stream = streams_[flows_[other].stream];
    full = full || (stream.uses == 0 && stream.rate > part);
    if (part >= stream.safe) continue;
    stream.safe = part;
    if (stream.attached) mark_changed(flows_[other].stream);
  }
  if (full) crowd(link, now);
  return full;
}

void Network::leave_port(int id, int way) {
  Flow& flow = flows_[id];
  Port& port = ports_[worker_link(flow.rank[way], way)];
  const int previous = flow.port_previous[way];
  const int next = flow.port_next[way];
  (previous >= 0 ? flows_[previous].port_next[way] : port.first_flow) = next;
  if (next >= 0) flows_[next].port_previous[way] = previous;
  if (--port.flows < 2) port.crowded = false;
  --class_use_[class_of_[flow.rank[way]]][way].flows;
}

void Network::crowd(int link, double now) {
  ports_[link].crowded = true;
  const int way = link % 2;
  for (int flow = ports_[link].first_flow; flow >= 0; flow = flows_[flow].port_next[way])
    crowd_out(flow, now);
}

void Network::crowd_out(int id, double now) {
  const int old = flows_[id].stream;
  if (old < 0 || streams_[old].single) return;
  advance(streams_[old], now);
  const Flow& flow = flows_[id];
  const double rest = (flow.tag - streams_[old].served) / flow.copies;
  remove_from_stream(id, now);
  const int single = new_single(flow.path, flow.rank[0], flow.rank[1], flow.copies, now);
  enqueue(single, id, std::max(rest, 0.0));
  streams_[single].safe = safe_rate(id);
  weigh(single, flow.copies, now);
}

double Network::safe_rate(int id) const {
  const Flow& flow = flows_[id];
  const double up = ports_[worker_link(flow.rank[kUp], kUp)].part() / flow.copies;
  return flow.rank[kDown] < 0 ? up
                              : std::min(up, ports_[worker_link(flow.rank[kDown], kDown)].part());
}

// A stream has become faster than is safe: crowd the links where it matters, or find that flows
// have left them meanwhile.
void Network::relieve(int id, double now) {
  scratch_.clear();
  const Stream& stream = streams_[id];
  for (std::size_t e = stream.head; e < stream.entries.size(); ++e)
    for (int flow = stream.entries[e].first; flow >= 0; flow = flows_[flow].next)
      scratch_.push_back(flow);
  const double rate = stream.rate;
  double safe = kNever;
  for (const int flow : scratch_) {
    if (flows_[flow].bundle >= 0) continue;  // alone on its links
    for (const int way : {kUp, kDown}) {
      if (flows_[flow].rank[way] < 0) continue;
      const int link = worker_link(flows_[flow].rank[way], way);
      if (rate * flows_[flow].copies > ports_[link].part()) crowd(link, now);
    }
    if (flows_[flow].stream == id) safe = std::min(safe, safe_rate(flow));
  }
  streams_[id].safe = safe;
}

void Network::remove_from_stream(int id, double now) {
  const int stream = flows_[id].stream;
  unlink(id);
  weigh(stream, -1, now);
}

void Network::unlink(int id) {
  Stream& stream = streams_[flows_[id].stream];
  const auto entry = std::lower_bound(
      stream.entries.begin() + static_cast<std::ptrdiff_t>(stream.head), stream.entries.end(),
      flows_[id].tag, [](const Entry& each, double tag) { return each.tag < tag; });
  int previous = -1;
  for (int at = entry->first; at != id; at = flows_[at].next) previous = at;
  (previous >= 0 ? flows_[previous].next : entry->first) = flows_[id].next;
  if (entry->last == id) entry->last = previous;
  if (--entry->flows == 0) stream.entries.erase(entry);
}

int Network::new_single(int path_id, Rank from, Rank to, int copies, double now) {
  int id = static_cast<int>(streams_.size());
  if (free_singles_.empty()) {
    streams_.emplace_back();
    rate_.push_back(0);
  } else {
    id = free_singles_.back();
    free_singles_.pop_back();
  }
  const Path& path = paths_[path_id];
  Stream& stream = streams_[id];
  stream.single = true;
  stream.path = path_id;
  stream.rate = 0;
  stream.served = 0;
  stream.last = now;
  stream.scheduled = kNever;
  stream.cap = kNever;
  stream.safe = kNever;
  stream.uses = 0;
  stream.use[stream.uses++].link = worker_link(from, kUp);
  if (to >= 0) {
    for (const int link : path.shared) stream.use[stream.uses++].link = link;
    stream.use[stream.uses++].link = worker_link(to, kDown);
  } else {
    // The receivers' links are like the sender's: no copy gets more than one of them carries.
    stream.cap = path.cap / copies;
  }
  return id;
}

void Network::enqueue(int stream_id, int id, double tag) {
  Stream& stream = streams_[stream_id];
  Flow& flow = flows_[id];
  flow.stream = stream_id;
  flow.tag = tag;
  flow.next = -1;
  auto& entries = stream.entries;
  if (stream.head < entries.size() && entries.back().tag == tag) {
    Entry& entry = entries.back();
    flows_[entry.last].next = id;
    entry.last = id;
    ++entry.flows;
    return;
  }
  const Entry entry{tag, id, id, 1};
  if (stream.head == entries.size() || entries.back().tag < tag) {
    entries.push_back(entry);
  } else {
    const auto at =
        std::upper_bound(entries.begin() + static_cast<std::ptrdiff_t>(stream.head), entries.end(),
                         tag, [](double t, const Entry& each) { return t < each.tag; });
    // Flows of one tag are one entry, so that a flow is found by its tag.
    if (at != entries.begin() + static_cast<std::ptrdiff_t>(stream.head) && (at - 1)->tag == tag) {
      flows_[(at - 1)->last].next = id;
      (at - 1)->last = id;
      ++(at - 1)->flows;
      return;
    }
    entries.insert(at, entry);
  }
  touch(stream_id);
}

void Network::weigh(int stream_id, int flows, double now) {
  Stream& stream = streams_[stream_id];
  advance(stream, now);
  const bool was_empty = stream.weight == 0;
  stream.weight += flows;
  if (stream.weight == 0) {
    if (stream.attached) detach(stream_id);
    stream.served = 0;
    stream.scheduled = kNever;
    stream.safe = kNever;
    stream.entries.clear();
    stream.head = 0;
    if (stream.single) free_singles_.push_back(stream_id);
    return;
  }
  touch(stream_id);
  if (stream.uses == 0) return;
  if (was_empty) attach(stream_id);
  for (int i = 0; i < stream.uses; ++i) {
    const LinkUse& use = stream.use[i];
    links_[use.link].streams[use.position].weight = stream.weight;
    mark_dirty(use.link);
  }
}

void Network::attach(int id) {
  Stream& stream = streams_[id];
  stream.attached = true;
  stream.rate = rate_[id] = 0;  // until the levels are known
  for (int i = 0; i < stream.uses; ++i) {
    auto& list = links_[stream.use[i].link].streams;
    stream.use[i].position = static_cast<int>(list.size());
    list.push_back({.cap = stream.cap,
                    .weight = static_cast<double>(stream.weight),
                    .stream = id,
                    .which = i,
                    .other = stream.uses == 2 ? stream.use[1 - i].link : -1});
  }
  mark_changed(id);
}

void Network::mark_changed(int id) {
  Stream& stream = streams_[id];
  if (stream.changed) return;
  stream.changed = true;
  changed_.push_back(id);
}

void Network::detach(int id) {
  Stream& stream = streams_[id];
  stream.attached = false;
  for (int i = 0; i < stream.uses; ++i) {
    auto& list = links_[stream.use[i].link].streams;
    const int hole = stream.use[i].position;
    list[hole] = list.back();
    streams_[list[hole].stream].use[list[hole].which].position = hole;
    list.pop_back();
    mark_dirty(stream.use[i].link);
  }
}

void Network::advance(Stream& stream, double now) const {
  if (now > stream.last) {
    if (stream.weight > 0) stream.served += stream.rate * (now - stream.last);
    stream.last = now;
  }
}

void Network::touch(int id) {
  Stream& stream = streams_[id];
  if (stream.touched) return;
  stream.touched = true;
  touched_.push_back(id);
}

void Network::mark_dirty(int id) {
  LinkState& link = links_[id];
  if (link.dirty) return;
  link.dirty = true;
  dirty_.push_back(id);
}

void Network::stream_done(int id, double now) {
  Stream& stream = streams_[id];
  if (stream.scheduled != now || stream.weight == 0) return;
  stream.scheduled = kNever;
  advance(stream, now);
  const double latency = paths_[stream.path].latency;
  const double rounding = 4e-16 * now * stream.rate;
  int gone = 0;
  while (stream.head < stream.entries.size()) {
    const Entry& entry = stream.entries[stream.head];
    if (entry.tag - stream.served > rounding + 4e-16 * entry.tag) break;
    for (int flow = entry.first; flow >= 0; flow = flows_[flow].next) {
      if (flows_[flow].bundle >= 0) {
        gone += flows_[flow].copies;
        end_bundle(flow);
        continue;
      }
      gone += stream.single ? flows_[flow].copies : 1;
      if (!paths_[stream.path].ports) continue;
      leave_port(flow, kUp);
      if (flows_[flow].rank[1] >= 0) leave_port(flow, kDown);
    }
    queue_.push(now + latency, Happening::delivery, entry.first);
    ++stream.head;
  }
  if (stream.head > 32 && 2 * stream.head > stream.entries.size()) {
    stream.entries.erase(stream.entries.begin(),
                         stream.entries.begin() + static_cast<std::ptrdiff_t>(stream.head));
    stream.head = 0;
  }
  if (gone > 0)
    weigh(id, -gone, now);
  else
    touch(id);
}

void Network::set_bandwidth(int id, double bytes_per_second) {
  links_[id].capacity = bytes_per_second;
  mark_dirty(id);
}

void Network::set_latency(int link_up, double seconds) {
  const double added = (seconds - links_[link_up].latency) / 2;
  links_[link_up].latency = seconds;
  for (Path& path : paths_)
    for (const int link : path.latency_links)
      if (link == link_up) path.latency += added;
}

}  // namespace riffle
