#include "engine/mailbox.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "riffle/error.h"

namespace riffle::engine {

namespace {

struct WireHeader {
  Tag tag;
  std::uint64_t bytes;
};

// Published piece by piece, so that the reader copies one while we write the next.
constexpr std::size_t piece_bytes = std::size_t{64} << 10;

// Addresses set aside for a message that is kept; memory follows what has arrived.
constexpr std::size_t longest_reserve = std::size_t{256} << 20;

// Memory of kept messages that is used again: getting it anew from the kernel costs more than
// copying.
constexpr std::size_t spare_bytes = std::size_t{1} << 20;
constexpr std::size_t most_spares = 16;

// One call of progress() takes at most this many steps of the network, so that a flood does not
// keep a thread.
constexpr int longest_run = 64;

// A peer that has not taken a few chunks by then is not worth waiting for.
constexpr auto longest_withdrawal = std::chrono::seconds(1);

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

}  // namespace

Mailbox::Mailbox(Rank self, std::vector<Peer> peers, Network* network, Callbacks callbacks)
    : self_(self), network_(network), callbacks_(std::move(callbacks)), wires_(peers.size()) {
  std::vector<std::string> addresses;
  for (std::size_t r = 0; r < peers.size(); ++r) {
    wires_[r].peer = std::move(peers[r]);
    addresses.push_back(wires_[r].peer.address);
  }
  const std::lock_guard lock(mutex_);
  if (network_ != nullptr) network_->open(std::move(addresses), *this);
}

std::uint64_t Mailbox::send(Rank to, Tag tag, std::span<const std::byte> data) {
  bool wrote = false;
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_++;
    records_[id] = {.state = {.peer = to, .is_send = true}, .tag = tag, .out = data, .in = {}};
    Wire& wire = wires_[static_cast<std::size_t>(to)];
    if (to == self_) {
      const auto message = begin(to, tag, data.size());
      std::byte* target = place(*message, data.size());
      if (target != nullptr && !data.empty()) std::memcpy(target, data.data(), data.size());
      finish(*message);
      records_[id].state.outcome = Outcome::done;
      wrote = true;
    } else {
      wire.outgoing.push_back({.id = id, .tag = tag, .data = data, .copy = {}});
      if (!wire.closed) wrote = push(to, wire);
    }
  }
  if (wrote) callbacks_.wake(to);
  return id;
}

std::uint64_t Mailbox::receive(Rank from, Tag tag, std::span<std::byte> data) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = next_++;
  Record& record = records_[id];
  record = {.state = {.peer = from, .is_send = false}, .tag = tag, .out = {}, .in = data};
  const auto kept = unexpected_.find({from, tag});
  if (kept == unexpected_.end()) {
    waiting_[{from, tag}].push_back(id);
    return id;
  }
  const std::shared_ptr<Message> message = kept->second.front();
  kept->second.pop_front();
  if (kept->second.empty()) unexpected_.erase(kept);
  deliver_kept(id, record, *message);
  recycle(std::move(message->kept));
  return id;
}

void Mailbox::deliver_kept(std::uint64_t id, Record& record, Message& message) {
  if (message.bytes != record.in.size()) {
    record.state.outcome = Outcome::wrong_size;
    record.state.expected = record.in.size();
    record.state.arrived = message.bytes;
    message.dropped = true;
    return;
  }
  // With what has come of a chunk that is not whole yet.
  if (!message.kept.empty())
    std::memcpy(record.in.data(), message.kept.data(), message.kept.size());
  if (message.arrived == message.bytes) {
    record.state.outcome = Outcome::done;
  } else {
    record.begun = true;
    message.id = id;  // the rest goes straight to its buffer
  }
}

void Mailbox::recycle(Bytes bytes) {
  bytes.clear();
  if (bytes.capacity() > 0 && bytes.capacity() <= spare_bytes && spare_.size() < most_spares)
    spare_.push_back(std::move(bytes));
}

void Mailbox::progress() {
  std::vector<Rank> woken;
  {
    const std::lock_guard lock(mutex_);
    if (network_ != nullptr) pull_network();
    for (std::size_t r = 0; r < wires_.size(); ++r) {
      Wire& wire = wires_[r];
      const Rank rank = static_cast<Rank>(r);
      if (rank == self_ || wire.closed) continue;
      const bool last = callbacks_.failed(rank);  // asked first: what was sent before it counts
      if (push(rank, wire)) woken.push_back(rank);
      if (!wire.remote() && pull(rank, wire)) woken.push_back(rank);
      if (last) close(rank, wire);
    }
    if (std::exchange(completed_, false)) woken.push_back(self_);
  }
  for (const Rank rank : woken) callbacks_.wake(rank);
}

void Mailbox::close(Rank rank, Wire& wire) {
  if (wire.remote() && !wire.left) {
    while (network_->progress()) continue;
    network_->abandon(rank);
  }
  wire.closed = true;
}

bool Mailbox::push(Rank to, Wire& wire) {
  if (!wire.remote()) return push_ring(wire);
  push_network(to, wire);
  return false;  // the network wakes its own
}

bool Mailbox::push_ring(Wire& wire) {
  bool moved = false;
  Ring& ring = *wire.peer.out;
  while (!wire.outgoing.empty()) {
    Outgoing& out = wire.outgoing.front();
    if (!out.header_sent) {
      if (ring.room() < sizeof(WireHeader)) return moved;
      ring.put(bytes_of(WireHeader{.tag = out.tag, .bytes = out.data.size()}));
      out.header_sent = true;
      if (out.id != 0) records_[out.id].begun = true;
      moved = true;
    }
    while (out.sent < out.data.size()) {
      const std::size_t piece = std::min({ring.room(), out.data.size() - out.sent, piece_bytes});
      if (piece == 0) return moved;
      ring.put(out.data.subspan(out.sent, piece));
      out.sent += piece;
      moved = true;
    }
    if (out.id != 0) {
      records_[out.id].state.outcome = Outcome::done;
      completed_ = true;
    }
    wire.outgoing.pop_front();
  }
  return moved;
}

bool Mailbox::pull(Rank from, Wire& wire) {
  bool moved = false;
  Ring& ring = *wire.peer.in;
  while (true) {
    if (!wire.incoming) {
      if (ring.available() < sizeof(WireHeader)) return moved;
      WireHeader header{};
      ring.take(reinterpret_cast<std::byte*>(&header), sizeof header);
      wire.incoming = begin(from, header.tag, header.bytes);
      moved = true;
    }
    Message& message = *wire.incoming;
    while (message.arrived < message.bytes) {
      const std::size_t piece =
          std::min({ring.available(), message.bytes - message.arrived, piece_bytes});
      if (piece == 0) return moved;
      ring.take(place(message, piece), piece);
      message.arrived += piece;
      moved = true;
    }
    finish(message);
    wire.incoming.reset();
  }
}

// Where the next bytes of a message go; null when nobody wants them.
std::byte* Mailbox::place(Message& message, std::size_t bytes) {
  if (message.id == 0 && !message.dropped) message.kept.resize(message.arrived + bytes);
  return place_at(message, message.arrived);
}

std::byte* Mailbox::place_at(Message& message, std::size_t offset) {
  if (message.dropped) return nullptr;
  return (message.id != 0 ? records_[message.id].in.data() : message.kept.data()) + offset;
}

std::shared_ptr<Mailbox::Message> Mailbox::begin(Rank from, Tag tag, std::size_t bytes) {
  auto message = std::make_shared<Message>(Message{.tag = tag, .bytes = bytes, .kept = {}});
  const auto waiting = waiting_.find({from, tag});
  if (waiting == waiting_.end()) {
    if (!spare_.empty() && bytes <= spare_bytes) {
      message->kept = std::move(spare_.back());
      spare_.pop_back();
    }
    message->kept.reserve(std::min(bytes, longest_reserve));
    unexpected_[{from, tag}].push_back(message);
    return message;
  }
  const std::uint64_t id = waiting->second.front();
  waiting->second.pop_front();
  if (waiting->second.empty()) waiting_.erase(waiting);
  Record& record = records_[id];
  if (record.in.size() == bytes) {
    record.begun = true;
    message->id = id;
  } else {
    record.state.outcome = Outcome::wrong_size;
    record.state.expected = record.in.size();
    record.state.arrived = bytes;
    message->dropped = true;
    completed_ = true;
  }
  return message;
}

void Mailbox::finish(Message& message) {
  message.arrived = message.bytes;
  if (message.id == 0 || message.dropped) return;
  records_[message.id].state.outcome = Outcome::done;
  completed_ = true;
}

bool Mailbox::is_pending(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto record = records_.find(id);
  RIFFLE_CHECK(record != records_.end());
  return record->second.state.outcome == Outcome::pending;
}

Rank Mailbox::peer(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  return records_.at(id).state.peer;
}

Mailbox::State Mailbox::take(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto record = records_.find(id);
  RIFFLE_CHECK(record != records_.end());
  const State state = record->second.state;
  if (state.outcome != Outcome::pending) records_.erase(record);
  return state;
}

void Mailbox::cancel(std::uint64_t id) {
  bool completed = false;
  {
    const std::lock_guard lock(mutex_);
    forget(id);
    completed = std::exchange(completed_, false);
  }
  if (completed) callbacks_.wake(self_);
}

void Mailbox::forget(std::uint64_t id) {
  if (!records_.contains(id)) return;
  Wire& wire = wires_[static_cast<std::size_t>(records_[id].state.peer)];
  if (records_[id].in_flight > 0) withdraw(id, wire);
  const Record record = records_.extract(id).mapped();
  if (record.state.outcome != Outcome::pending) return;
  if (record.state.is_send) {
    const auto out = std::find_if(wire.outgoing.begin(), wire.outgoing.end(),
                                  [&](const Outgoing& o) { return o.id == id; });
    if (out == wire.outgoing.end()) return;  // was with a network that is lost
    if (!record.begun) {
      wire.outgoing.erase(out);
    } else {
      out->copy = std::make_shared<std::vector<std::byte>>(out->data.begin(), out->data.end());
      out->data = *out->copy;
      out->id = 0;
    }
  } else if (record.begun) {
    Message& message = wire.remote() ? *wire.incoming_by_tag.at(record.tag) : *wire.incoming;
    message.dropped = true;
    message.id = 0;
  } else {
    const auto waiting = waiting_.find({record.state.peer, record.tag});
    std::erase(waiting->second, id);
    if (waiting->second.empty()) waiting_.erase(waiting);
  }
}

// ---------------------------------------------------------------------------- over the network

// Of each channel only its first message is sent; channels take turns, chunk by chunk, so that a
// long message of one does not hold up the others.
std::deque<Mailbox::Outgoing>::iterator Mailbox::next_in_turn(Wire& wire) {
  auto lowest = wire.outgoing.begin();
  auto next = wire.outgoing.end();
  for (auto each = wire.outgoing.begin(); each != wire.outgoing.end(); ++each) {
    if (each->tag.channel < lowest->tag.channel) lowest = each;
    if (each->tag.channel > wire.last_channel &&
        (next == wire.outgoing.end() || each->tag.channel < next->tag.channel))
      next = each;
  }
  if (next == wire.outgoing.end()) next = lowest;
  wire.last_channel = next->tag.channel;
  return next;
}

void Mailbox::push_network(Rank to, Wire& wire) {
  while (!wire.outgoing.empty() && network_->has_room(to)) {
    const auto out = next_in_turn(wire);
    const Chunk chunk{.tag = out->tag, .bytes = out->data.size(), .offset = out->sent};
    const auto piece = out->data.subspan(
        out->sent, std::min(out->data.size() - out->sent, network_->chunk_bytes(to)));
    out->sent += piece.size();
    const bool last = out->sent == out->data.size();
    const std::uint64_t id = out->id;
    const auto keep = out->copy;
    if (last) wire.outgoing.erase(out);
    if (id != 0) {
      Record& record = records_[id];
      record.begun = true;
      record.posted = last;
      ++record.in_flight;
    }
    network_->send(to, chunk, piece, id, keep);
  }
}

// Stops when a request is done: what follows may be for a receive that its owner is about to post,
// and would be copied twice if it came before.
void Mailbox::pull_network() {
  for (int i = 0; i < longest_run && network_->progress() && !completed_; ++i) continue;
}

bool Mailbox::begin(Rank from, const Chunk& chunk, std::size_t bytes) {
  auto& messages = wires_[static_cast<std::size_t>(from)].incoming_by_tag;
  auto found = messages.find(chunk.tag);
  if (found == messages.end()) {
    if (chunk.offset != 0) return false;
    found = messages.emplace(chunk.tag, begin(from, chunk.tag, chunk.bytes)).first;
  }
  Message& message = *found->second;
  const std::size_t left = message.bytes - message.arrived;
  if (message.bytes != chunk.bytes || message.arrived != chunk.offset || bytes > left ||
      (bytes == 0 && left > 0))
    return false;
  if (message.id == 0 && !message.dropped) message.kept.resize(message.arrived + bytes);
  return true;
}

std::byte* Mailbox::place(Rank from, const Chunk& chunk, std::size_t done) {
  Message& message = *wires_[static_cast<std::size_t>(from)].incoming_by_tag.at(chunk.tag);
  return place_at(message, chunk.offset + done);
}

void Mailbox::arrived(Rank from, const Chunk& chunk, std::size_t bytes) {
  auto& messages = wires_[static_cast<std::size_t>(from)].incoming_by_tag;
  const auto found = messages.find(chunk.tag);
  Message& message = *found->second;
  message.arrived += bytes;
  callbacks_.heard(from);
  if (message.arrived < message.bytes) return;
  finish(message);
  messages.erase(found);
}

std::size_t Mailbox::bytes_on_the_way(Rank to) {
  const std::lock_guard lock(mutex_);
  return wires_[static_cast<std::size_t>(to)].remote() ? network_->bytes_on_the_way(to) : 0;
}

void Mailbox::sent(std::uint64_t request) {
  const auto found = records_.find(request);
  if (found == records_.end()) return;
  Record& record = found->second;
  --record.in_flight;
  // What a lost connection has dropped stays pending, and its wait finds the rank failed.
  if (record.in_flight > 0 || !record.posted || callbacks_.failed(record.state.peer)) return;
  record.state.outcome = Outcome::done;
  completed_ = true;
}

void Mailbox::left(Rank peer, Rank culprit) {
  wires_[static_cast<std::size_t>(peer)].left = true;
  callbacks_.left(peer, culprit);
  completed_ = true;  // whoever waits for it should look
}

void Mailbox::lost(Rank peer) {
  callbacks_.lost(peer);
  completed_ = true;
}

// Returns when the network no longer reads the request's memory.
void Mailbox::withdraw(std::uint64_t id, Wire& wire) {
  const Rank peer = records_[id].state.peer;
  const Deadline deadline = Clock::now() + longest_withdrawal;
  while (records_[id].in_flight > 0 && !wire.closed && Clock::now() < deadline)
    if (!network_->progress()) sched_yield();
  if (records_[id].in_flight == 0) return;
  network_->abandon(peer);
  wire.closed = true;
}

bool Mailbox::arm() {
  const std::lock_guard lock(mutex_);
  return network_->arm();
}

void Mailbox::leave(Rank culprit, Deadline deadline) {
  const std::lock_guard lock(mutex_);
  if (network_ == nullptr) return;
  const auto flush = [&] {
    bool all = true;
    for (std::size_t r = 0; r < wires_.size(); ++r) {
      Wire& wire = wires_[r];
      if (!wire.remote() || wire.outgoing.empty() || callbacks_.failed(static_cast<Rank>(r)))
        continue;
      push_network(static_cast<Rank>(r), wire);
      all = all && wire.outgoing.empty();
    }
    return all;
  };
  while (!flush() && Clock::now() < deadline)
    if (!network_->progress()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  network_->leave(culprit, deadline, callbacks_.failed);
}

}  // namespace riffle::engine
