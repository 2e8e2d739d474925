#include "lab/fabric.h"

#include <algorithm>
#include <cmath>

namespace riffle::lab {

namespace {

// The flow of others' traffic; no connection has this number but by a rare chance.
constexpr std::uint64_t others = 0;
// Of a link's rate. Others who want more leave no more to anybody; each of their pieces would still
// have to be counted, and a switch that does nothing else moves no packets.
constexpr double most_load_of_switch = 16;  // whose queue drops theirs and ours alike
constexpr double most_load_of_host = 1;     // where theirs go first

}  // namespace

Fabric::Fabric(Wiring wiring, std::uint64_t seed) : wiring_(std::move(wiring)), random_(seed) {
  for (const Port& port : wiring_.ports) states_.emplace_back(port.quantum);
}

int Fabric::keep(Packet kept) {
  if (unused_.empty()) {
    packets_.push_back(std::move(kept));
    return static_cast<int>(packets_.size()) - 1;
  }
  const int id = unused_.back();
  unused_.pop_back();
  packet(id) = std::move(kept);
  return id;
}

void Fabric::forget(int id) {
  packet(id).bytes = {};
  unused_.push_back(id);
}

void Fabric::push(Nanoseconds at, Kind kind, int port, int id) {
  events_.push({.at = at, .order = ++order_, .kind = kind, .port = port, .packet = id});
}

void Fabric::send(Packet sent, Nanoseconds now) {
  const auto& path = wiring_.path(sent.from, sent.to);
  if (path.empty()) return;
  sent.hop = 0;
  sent.tail = now;
  // Not at once: what happens before it may not have been done yet.
  push(now, Kind::arrive, path.front(), keep(std::move(sent)));
}

void Fabric::run(Nanoseconds now, const Deliver& deliver) {
  while (!events_.empty() && events_.top().at <= now) {
    const Event event = events_.top();
    events_.pop();
    switch (event.kind) {
      case Kind::arrive:
        arrive(event.port, event.packet, event.at);
        break;
      case Kind::free:
        start_next(event.port, event.at);
        break;
      case Kind::others:
        send_of_others(event.port, event.packet, event.at);
        break;
      case Kind::deliver:
        deliver(packet(event.packet), event.at);
        forget(event.packet);
        break;
    }
  }
}

// ---------------------------------------------------------------------------- at a port

void Fabric::arrive(int port, int id, Nanoseconds at) {
  State& here = state(port);
  const Packet& arrived = packet(id);
  const std::int64_t room =
      here.is_cut ? 0 : wiring_.ports[static_cast<std::size_t>(port)].limit - here.waiting;
  if (here.is_cut || (here.busy && arrived.size() > room)) {
    const std::int64_t fits = arrived.segments * std::max<std::int64_t>(room, 0) / arrived.size();
    std::vector<bool> gone(static_cast<std::size_t>(arrived.segments), true);
    if (!arrived.bytes.empty()) std::fill_n(gone.begin(), fits, false);
    here.counters.dropped += arrived.segments - std::ranges::count(gone, false);
    return enqueue_rest(port, id, gone, at);
  }
  if (here.loss == 0 || arrived.bytes.empty()) return enqueue(port, id, at);
  // Each segment meets its own fate.
  std::vector<bool> gone(static_cast<std::size_t>(arrived.segments));
  for (std::size_t i = 0; i < gone.size(); ++i) gone[i] = random_.uniform() < here.loss;
  here.counters.lost += std::ranges::count(gone, true);
  enqueue_rest(port, id, gone, at);
}

void Fabric::enqueue_rest(int port, int id, const std::vector<bool>& gone, Nanoseconds at) {
  const auto count = std::ranges::count(gone, true);
  if (count == 0) return enqueue(port, id, at);
  const Packet whole = std::move(packet(id));
  forget(id);
  if (count == whole.segments) return;
  for (Packet& left : without(whole, gone)) enqueue(port, keep(std::move(left)), at);
}

void Fabric::enqueue(int port, int id, Nanoseconds at) {
  State& here = state(port);
  if (!here.busy) return start(port, id, at);
  const std::int64_t bytes = packet(id).size();
  here.waiting += bytes;
  here.counters.most_waiting = std::max(here.counters.most_waiting, here.waiting);
  if (wiring_.ports[static_cast<std::size_t>(port)].fair && !packet(id).bytes.empty())
    here.fair.push(packet(id).flow, id, bytes);
  else
    here.line.push_back(id);
}

int Fabric::take(int port) {
  State& here = state(port);
  int id = -1;
  if (!here.line.empty()) {
    id = here.line.front();
    here.line.pop_front();
  } else if (!here.fair.empty()) {
    id = here.fair.pop();
  }
  if (id >= 0) here.waiting -= packet(id).size();
  return id;
}

void Fabric::start_next(int port, Nanoseconds at) {
  state(port).busy = false;
  if (const int id = take(port); id >= 0) start(port, id, at);
}

void Fabric::start(int port, int id, Nanoseconds at) {
  State& here = state(port);
  const Port& spec = wiring_.ports[static_cast<std::size_t>(port)];
  Packet& sent = packet(id);
  const auto takes = static_cast<Nanoseconds>(std::llround(sent.payload / spec.bandwidth * 1e9));
  here.counters.busy += takes;
  here.busy = true;
  push(at + takes, Kind::free, port, 0);
  if (sent.bytes.empty()) return forget(id);  // of others: it has gone its own way
  here.counters.bytes += sent.payload;
  here.counters.packets += sent.segments;

  Nanoseconds head = at + spec.latency;
  if (here.jitter > 0) {
    head += static_cast<Nanoseconds>(random_.uniform() * static_cast<double>(here.jitter));
    head = std::max(head, here.last_out);
    here.last_out = head + takes;
  }
  sent.tail = std::max(at + takes, sent.tail) + (head - at);
  const auto& path = wiring_.path(sent.from, sent.to);
  if (++sent.hop == path.size())
    push(sent.tail, Kind::deliver, port, id);
  else
    push(head, Kind::arrive, path[sent.hop], id);
}

// ---------------------------------------------------------------------------- changes

void Fabric::set_bandwidth(int port, double bytes_per_second) {
  wiring_.ports[static_cast<std::size_t>(port)].bandwidth = bytes_per_second;
}

void Fabric::set_latency(int port, Nanoseconds latency) {
  wiring_.ports[static_cast<std::size_t>(port)].latency = latency;
}

void Fabric::set_jitter(int port, Nanoseconds most) {
  state(port).jitter = most;
}

void Fabric::set_loss(int port, double share) {
  state(port).loss = share;
}

void Fabric::set_load(int port, double bytes_per_second, Nanoseconds now) {
  State& here = state(port);
  here.load = bytes_per_second;
  ++here.load_number;  // the pieces of a load that was end
  if (bytes_per_second > 0) push(now, Kind::others, port, here.load_number);
}

// Pieces come at random, as from many who do not know of each other.
void Fabric::send_of_others(int port, int number, Nanoseconds at) {
  State& here = state(port);
  if (number != here.load_number) return;
  Packet piece;
  piece.flow = others;
  const Port& spec = wiring_.ports[static_cast<std::size_t>(port)];
  piece.payload = static_cast<int>(spec.quantum);
  const double most = spec.bandwidth * (spec.fair ? most_load_of_host : most_load_of_switch);
  const double mean = piece.payload / std::min(here.load, most) * 1e9;
  push(at + std::llround(-std::log(1 - random_.uniform()) * mean), Kind::others, port, number);
  arrive(port, keep(std::move(piece)), at);
}

void Fabric::clear(int port) {
  State& here = state(port);
  for (int id = take(port); id >= 0; id = take(port)) {
    here.counters.dropped += packet(id).segments;
    forget(id);
  }
}

void Fabric::cut(int port) {
  state(port).is_cut = true;
  clear(port);
}

void Fabric::repair(int port) {
  state(port).is_cut = false;
}

}  // namespace riffle::lab
