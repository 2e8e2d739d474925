#include "engine/mailbox.h"

#include <algorithm>
#include <cstring>

#include "riffle/error.h"

namespace riffle {

namespace {

struct WireHeader {
  Tag tag;
  std::uint64_t bytes;
};

// Published piece by piece, so that the reader copies one while we write the next.
constexpr std::size_t piece_bytes = std::size_t{64} << 10;

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

}  // namespace

Mailbox::Mailbox(Rank self, std::vector<Peer> peers, std::function<void(Rank)> wake,
                 std::function<bool(Rank)> failed)
    : self_(self), wake_(std::move(wake)), failed_(std::move(failed)), wires_(peers.size()) {
  for (std::size_t r = 0; r < peers.size(); ++r) wires_[r].rings = peers[r];
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
      std::byte* target = message->id != 0 ? records_[message->id].in.data() : message->kept.data();
      if (!message->dropped && !data.empty()) std::memcpy(target, data.data(), data.size());
      finish(*message);
      records_[id].state.outcome = Outcome::done;
      wrote = true;
    } else {
      wire.outgoing.push_back({.id = id, .tag = tag, .data = data, .copy = {}});
      if (!wire.closed) wrote = push(wire);
    }
  }
  if (wrote) wake_(to);
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
  if (message.arrived > 0) std::memcpy(record.in.data(), message.kept.data(), message.arrived);
  if (message.arrived == message.bytes) {
    record.state.outcome = Outcome::done;
  } else {
    record.begun = true;
    message.id = id;  // the rest goes straight to its buffer
  }
}

void Mailbox::progress() {
  std::vector<Rank> woken;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t r = 0; r < wires_.size(); ++r) {
      Wire& wire = wires_[r];
      const Rank rank = static_cast<Rank>(r);
      if (rank == self_ || wire.closed) continue;
      const bool last = failed_(rank);  // asked first: what was sent before a failure counts
      const bool moved = static_cast<int>(push(wire)) + static_cast<int>(pull(rank, wire)) > 0;
      if (moved) woken.push_back(rank);
      wire.closed = last;
    }
    if (std::exchange(completed_, false)) woken.push_back(self_);
  }
  for (const Rank rank : woken) wake_(rank);
}

bool Mailbox::push(Wire& wire) {
  bool moved = false;
  Ring& ring = *wire.rings.out;
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
  Ring& ring = *wire.rings.in;
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
      std::byte* target = message.id != 0 ? records_[message.id].in.data() : message.kept.data();
      ring.take(message.dropped ? nullptr : target + message.arrived, piece);
      message.arrived += piece;
      moved = true;
    }
    finish(message);
    wire.incoming.reset();
  }
}

std::shared_ptr<Mailbox::Message> Mailbox::begin(Rank from, Tag tag, std::size_t bytes) {
  auto message = std::make_shared<Message>(Message{.tag = tag, .bytes = bytes, .kept = {}});
  const auto waiting = waiting_.find({from, tag});
  if (waiting == waiting_.end()) {
    message->kept.resize(bytes);
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
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(id);
  if (found == records_.end()) return;
  const Record record = found->second;
  records_.erase(found);
  if (record.state.outcome != Outcome::pending) return;
  Wire& wire = wires_[static_cast<std::size_t>(record.state.peer)];
  if (record.state.is_send) {
    const auto out = std::find_if(wire.outgoing.begin(), wire.outgoing.end(),
                                  [&](const Outgoing& o) { return o.id == id; });
    if (!record.begun) {
      wire.outgoing.erase(out);
    } else {
      out->copy.assign(out->data.begin(), out->data.end());
      out->data = out->copy;
      out->id = 0;
    }
  } else if (record.begun) {
    wire.incoming->dropped = true;
    wire.incoming->id = 0;
  } else {
    const auto waiting = waiting_.find({record.state.peer, record.tag});
    std::erase(waiting->second, id);
    if (waiting->second.empty()) waiting_.erase(waiting);
  }
}

}  // namespace riffle
