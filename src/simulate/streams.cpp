#include "simulate/streams.h"

#include <algorithm>

namespace riffle::simulator {

int Streams::add() {
  streams_.emplace_back();
  return static_cast<int>(streams_.size()) - 1;
}

int Streams::add_shared(int path_id) {
  const Path& path = paths_[path_id];
  const int id = add();
  streams_[id].path = path_id;
  if (path.shared.empty()) streams_[id].rate = path.cap;  // for good: nothing is shared
  rates_.set_route(id, path.cap, path.shared);
  return id;
}

int Streams::add_single(int path_id, Rank from, Rank to, int copies, double now) {
  int id = 0;
  if (free_singles_.empty()) {
    id = add();
  } else {
    id = free_singles_.back();
    free_singles_.pop_back();
  }
  Stream& stream = streams_[id];
  stream.single = true;
  stream.path = path_id;
  stream.rate = 0;
  stream.served = 0;
  stream.last = now;
  stream.scheduled = kNever;
  stream.safe = kNever;
  const Path& path = paths_[path_id];
  std::array<int, kMostLinks> links{};
  std::size_t count = 0;
  links[count++] = Links::worker(from, kUp);
  if (to >= 0) {
    for (const int link : path.shared) links[count++] = link;
    links[count++] = Links::worker(to, kDown);
  }
  // The receivers' links are like the sender's: no copy of a fan gets more than one of them
  // carries.
  rates_.set_route(id, to >= 0 ? kNever : path.cap / copies, {links.data(), count});
  return id;
}

void Streams::append(Stream::Entry& entry, int flow) {
  flows_[entry.last].next = flow;
  entry.last = flow;
  ++entry.flows;
}

void Streams::put(int stream_id, int id, double tag) {
  Stream& stream = streams_[stream_id];
  Flow& flow = flows_[id];
  flow.stream = stream_id;
  flow.tag = tag;
  flow.next = -1;
  auto& entries = stream.entries;
  if (stream.head < entries.size() && entries.back().tag == tag) return append(entries.back(), id);
  const Stream::Entry entry{tag, id, id, 1};
  if (stream.head == entries.size() || entries.back().tag < tag) {
    entries.push_back(entry);
  } else {
    const auto begin = entries.begin() + static_cast<std::ptrdiff_t>(stream.head);
    const auto at =
        std::upper_bound(begin, entries.end(), tag,
                         [](double t, const Stream::Entry& each) { return t < each.tag; });
    // Flows of one tag are one entry, so that a flow is found by its tag.
    if (at != begin && (at - 1)->tag == tag) return append(*(at - 1), id);
    entries.insert(at, entry);
  }
  touch(stream_id);
}

void Streams::remove(int id) {
  Stream& stream = streams_[flows_[id].stream];
  const auto entry = std::lower_bound(
      stream.entries.begin() + static_cast<std::ptrdiff_t>(stream.head), stream.entries.end(),
      flows_[id].tag, [](const Stream::Entry& each, double tag) { return each.tag < tag; });
  int previous = -1;
  for (int at = entry->first; at != id; at = flows_[at].next) previous = at;
  (previous >= 0 ? flows_[previous].next : entry->first) = flows_[id].next;
  if (entry->last == id) entry->last = previous;
  if (--entry->flows == 0) stream.entries.erase(entry);
}

void Streams::weigh(int id, int flows, double now) {
  advance(id, now);
  Stream& stream = streams_[id];
  stream.weight += flows;
  if (rates_.weigh(id, stream.weight)) stream.rate = 0;
  if (stream.weight > 0) return touch(id);
  stream.served = 0;
  stream.scheduled = kNever;
  stream.safe = kNever;
  stream.entries.clear();
  stream.head = 0;
  if (stream.single) free_singles_.push_back(id);
}

bool Streams::at_end(int id, double now) {
  Stream& stream = streams_[id];
  if (stream.scheduled != now || stream.weight == 0) return false;
  stream.scheduled = kNever;
  advance(id, now);
  return true;
}

int Streams::pop_ended(int id, double now) {
  Stream& stream = streams_[id];
  if (stream.head == stream.entries.size()) return -1;
  const Stream::Entry& entry = stream.entries[stream.head];
  const double rounding = 4e-16 * now * stream.rate;
  if (entry.tag - stream.served > rounding + 4e-16 * entry.tag) return -1;
  ++stream.head;
  return entry.first;
}

void Streams::popped(int id, int flows, double now) {
  Stream& stream = streams_[id];
  if (stream.head > 32 && 2 * stream.head > stream.entries.size()) {
    stream.entries.erase(stream.entries.begin(),
                         stream.entries.begin() + static_cast<std::ptrdiff_t>(stream.head));
    stream.head = 0;
  }
  if (flows > 0)
    weigh(id, -flows, now);
  else
    touch(id);
}

void Streams::update_rates(double now, std::vector<int>& unsafe) {
  rates_.settle([&](int id, double rate) {
    Stream& stream = streams_[id];
    if (rate > stream.safe) unsafe.push_back(id);
    if (rate == stream.rate) return;
    advance(id, now);
    stream.rate = rate;
    ++rate_changes_;
    touch(id);
  });
}

void Streams::schedule_ends(double now) {
  for (const int id : touched_) {
    streams_[id].touched = false;
    schedule_end(id, now);
  }
  touched_.clear();
}

void Streams::schedule_end(int id, double now) {
  Stream& stream = streams_[id];
  if (stream.weight == 0 || stream.rate <= 0) return;
  const double rest = stream.entries[stream.head].tag - stream.served;
  const double end = stream.last + std::max(rest, 0.0) / stream.rate;
  // A later end needs no event of its own: the earlier one finds out and asks again.
  if (end >= stream.scheduled) return;
  stream.scheduled = std::max(end, now);
  queue_.push(stream.scheduled, Happening::stream_done, id);
}

}  // namespace riffle::simulator
