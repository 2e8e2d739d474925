#include "simulate/ports.h"

#include <algorithm>

namespace riffle::simulator {

Ports::Ports(const Links& links, const Paths& paths, Flows& flows, Streams& streams)
    : links_(links), paths_(paths), flows_(flows), streams_(streams) {
  // A little more than they have: rates that fill a link exactly do not crowd it.
  constexpr double kSlack = 1e-12;
  for (int link = 0; links.is_worker(link); ++link)
    ports_.push_back({.capacity = links.capacity(link) * (1 + kSlack)});
  count_classes();
}

bool Ports::enter(int id, int way, double now) {
  Flow& flow = flows_[id];
  const int link = Links::worker(flow.rank[way], way);
  Port& port = ports_[link];
  ++class_flows_[paths_.class_of(flow.rank[way])][way];
  flow.port_previous[way] = -1;
  flow.port_next[way] = port.first_flow;
  if (port.first_flow >= 0) flows_[port.first_flow].port_previous[way] = id;
  port.first_flow = id;
  ++port.flows;
  if (port.crowded) return true;
  bool full = links_.variable(link);
  if (port.flows == 1 && !full) return false;
  // Flows that share no uplink have a rate already: the whole of what they get here. Of others it
  // is known only when the rates are settled.
  const double part = port.part();
  const Path& path = paths_[flow.path];
  full = full || (path.shared.empty() && path.cap > part);
  for (int other = flow.port_next[way]; other >= 0; other = flows_[other].port_next[way]) {
    const int stream_id = flows_[other].stream;
    Stream& stream = streams_[stream_id];
    full = full || (stream.route.uses == 0 && stream.rate > part);
    if (part >= stream.safe) continue;
    stream.safe = part;
    if (stream.route.attached) streams_.rates().ask(stream_id);
  }
  if (full) crowd(link, now);
  return full;
}

void Ports::leave(int id, int way) {
  Flow& flow = flows_[id];
  Port& port = ports_[Links::worker(flow.rank[way], way)];
  const int previous = flow.port_previous[way];
  const int next = flow.port_next[way];
  (previous >= 0 ? flows_[previous].port_next[way] : port.first_flow) = next;
  if (next >= 0) flows_[next].port_previous[way] = previous;
  if (--port.flows < 2) port.crowded = false;
  --class_flows_[paths_.class_of(flow.rank[way])][way];
}

void Ports::crowd(int link, double now) {
  ports_[link].crowded = true;
  const int way = link % 2;
  for (int flow = ports_[link].first_flow; flow >= 0; flow = flows_[flow].port_next[way])
    crowd_out(flow, now);
}

void Ports::crowd_out(int id, double now) {
  const int old = flows_[id].stream;
  if (old < 0 || streams_[old].single) return;
  streams_.advance(old, now);
  const Flow& flow = flows_[id];
  const double rest = (flow.tag - streams_[old].served) / flow.copies;
  streams_.remove(id);
  streams_.weigh(old, -1, now);
  const int single =
      streams_.add_single(flow.path, flow.rank[kUp], flow.rank[kDown], flow.copies, now);
  streams_.put(single, id, std::max(rest, 0.0));
  streams_[single].safe = safe_rate(id);
  streams_.weigh(single, flow.copies, now);
}

double Ports::safe_rate(int id) const {
  const Flow& flow = flows_[id];
  const double up = ports_[Links::worker(flow.rank[kUp], kUp)].part() / flow.copies;
  if (flow.rank[kDown] < 0) return up;
  return std::min(up, ports_[Links::worker(flow.rank[kDown], kDown)].part());
}

void Ports::relieve(int id, double now) {
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
      const int link = Links::worker(flows_[flow].rank[way], way);
      if (rate * flows_[flow].copies > ports_[link].part()) crowd(link, now);
    }
    if (flows_[flow].stream == id) safe = std::min(safe, safe_rate(flow));
  }
  streams_[id].safe = safe;
}

}  // namespace riffle::simulator
