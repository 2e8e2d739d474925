#include "engine/tcp/tcp_network.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <thread>

#include "engine/ipv4.h"
#include "riffle/error.h"

namespace riffle::engine {

namespace {

constexpr int events_at_a_time = 32;
// Of one connection, before others are looked at again.
constexpr std::size_t most_at_a_time = std::size_t{512} << 10;
// A stranger who says nothing costs a descriptor; more of them than this, beside one for each peer
// that may be about to say who it is, are too many.
constexpr std::size_t most_strangers = 128;
// A kernel lets a connection have 6 MB of receive buffer by default, of which half is window. A way
// of 1 Gbps (what a slow network may have) that takes longer than this window is filled by several.
constexpr double usual_window = 3e6;
constexpr double fast_enough = 125e6;
constexpr int most_connections = 8;

}  // namespace

std::unique_ptr<Network> make_tcp_network(const NetworkOptions& options) {
  return std::make_unique<TcpNetwork>(options);
}

TcpNetwork::TcpNetwork(const NetworkOptions& options)
    : options_(options), listener_(listen_on(options.ip)), poll_(epoll_create1(EPOLL_CLOEXEC)) {
  RIFFLE_CHECK(poll_.valid());
  watch(listener_.get(), EPOLLIN, nullptr, EPOLL_CTL_ADD);
}

TcpNetwork::~TcpNetwork() {
  events_ = nullptr;
}

std::string TcpNetwork::address() const {
  return local_address(listener_.get());
}

void TcpNetwork::open(std::vector<std::string> addresses, Events& events) {
  events_ = &events;
  peers_.resize(addresses.size());
  for (std::size_t r = 0; r < addresses.size(); ++r) {
    peers_[r].rank = static_cast<Rank>(r);
    peers_[r].address = std::move(addresses[r]);
  }
}

// The two kinds of connections are told apart by the lowest bit.
void TcpNetwork::watch(int fd, std::uint32_t events, void* who, int operation) const {
  epoll_event event{};
  event.events = events;
  event.data.ptr = who;
  RIFFLE_CHECK_EQ(epoll_ctl(poll_.get(), operation, fd, &event), 0);
}

// Before a socket is closed. Closing alone does not end its events where a child of this process,
// a loader of data say, has inherited it: they would name a connection that is no more.
void TcpNetwork::unwatch(int fd) const {
  if (fd >= 0) watch(fd, 0, nullptr, EPOLL_CTL_DEL);
}

// ---------------------------------------------------------------------------- sending

namespace {
void* as_sender(void* out) {
  return static_cast<char*>(out) + 1;
}
bool is_sender(void* who) {
  return (reinterpret_cast<std::uintptr_t>(who) & 1) != 0;
}
}  // namespace

void TcpNetwork::connect(Peer& peer) {
  const Hello hello{.magic = Hello::expected_magic,
                    .session = options_.session,
                    .from = static_cast<std::uint32_t>(options_.self),
                    .number = static_cast<std::uint32_t>(peer.out.size())};
  Outgoing& out = *peer.out.emplace_back(
      std::make_unique<Outgoing>(Outgoing{&peer, TcpSender(peer.address, hello), true}));
  watch(out.sender.fd(), EPOLLIN | EPOLLOUT, as_sender(&out), EPOLL_CTL_ADD);
}

void TcpNetwork::connect_more(Peer& peer) {
  const Seconds round_trip = peer.out.front()->sender.round_trip();
  const int wanted =
      std::clamp(static_cast<int>(std::ceil(round_trip.count() * fast_enough / usual_window)), 1,
                 most_connections);
  while (static_cast<int>(peer.out.size()) < wanted) connect(peer);
  if (peer.out.size() > 1)
    for (const auto& out : peer.out) out->sender.share();
}

std::size_t TcpNetwork::chunk_bytes(Rank to) const {
  return peers_[static_cast<std::size_t>(to)].out.size() > 1 ? tcp_shared_chunk_bytes
                                                             : tcp_chunk_bytes;
}

TcpNetwork::Outgoing* TcpNetwork::roomiest(const Peer& peer) const {
  // A frame on one that is still being made would hold up all that follow.
  for (const auto& out : peer.out)
    if (out->sender.has_room() && (out->sender.is_connected() || out == peer.out.front()))
      return out.get();
  return nullptr;
}

bool TcpNetwork::has_room(Rank to) const {
  const Peer& peer = peers_[static_cast<std::size_t>(to)];
  return peer.lost || peer.out.empty() || roomiest(peer) != nullptr;
}

void TcpNetwork::send(Rank to, const Chunk& chunk, std::span<const std::byte> data,
                      std::uint64_t request, std::shared_ptr<const void> keep) {
  Peer& peer = peers_[static_cast<std::size_t>(to)];
  if (peer.lost) return events_->sent(request);
  if (peer.out.empty())
    connect(peer);
  else if (data.size() >= tcp_shared_chunk_bytes)
    connect_more(peer);
  post(peer,
       {.kind = FrameKind::chunk,
        .bytes = static_cast<std::uint32_t>(data.size()),
        .sequence = 0,
        .chunk = chunk},
       data, request, std::move(keep));
}

void TcpNetwork::post(Peer& peer, const Frame& frame, std::span<const std::byte> data,
                      std::uint64_t request, std::shared_ptr<const void> keep) {
  Outgoing* out = roomiest(peer);
  if (out == nullptr) out = peer.out.front().get();  // a goodbye waits for nobody
  Frame numbered = frame;
  numbered.sequence = peer.next_out++;
  out->sender.push(numbered, data, request, std::move(keep));
  write(*out);
}

void TcpNetwork::write(Outgoing& out) {
  const bool whole = out.sender.write([this](std::uint64_t request) {
    if (events_ != nullptr) events_->sent(request);
  });
  if (!whole) return lose(*out.peer);
  if (out.watched == out.sender.has_work()) return;
  out.watched = out.sender.has_work();
  watch(out.sender.fd(), EPOLLIN | (out.watched ? EPOLLOUT : 0U), as_sender(&out), EPOLL_CTL_MOD);
}

// What our own link carries shows with whoever got much; few have got much of late.
std::size_t TcpNetwork::bytes_on_the_way(Rank to) const {
  const Peer& peer = peers_[static_cast<std::size_t>(to)];
  if (peer.out.empty()) return 0;
  double most = 0;
  for (const Peer& each : peers_) {
    double rate = 0;
    for (const auto& out : each.out) rate += out->sender.bytes_per_second();
    most = std::max(most, rate);
  }
  return static_cast<std::size_t>(most * peer.out.front()->sender.round_trip().count() / 2);
}

// ---------------------------------------------------------------------------- receiving

void TcpNetwork::accept_all() {
  while (true) {
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    const auto strangers = std::ranges::count(incoming_, nullptr, &Incoming::peer);
    if (static_cast<std::size_t>(strangers) >= most_strangers + peers_.size())
      forget(*std::ranges::find(incoming_, nullptr, &Incoming::peer));
    Incoming& from = incoming_.emplace_back(Incoming{nullptr, TcpReceiver(std::move(socket))});
    watch(from.receiver.fd(), EPOLLIN, &from, EPOLL_CTL_ADD);
  }
}

void TcpNetwork::identify(Incoming& from) {
  Hello hello;
  const auto state = from.receiver.read_hello(hello);
  if (state == TcpReceiver::State::more) return;
  const bool ours = state == TcpReceiver::State::ready && hello.magic == Hello::expected_magic &&
                    hello.session == options_.session && hello.from < peers_.size() &&
                    !peers_[hello.from].address.empty() && !peers_[hello.from].lost &&
                    hello.number < most_connections;
  if (!ours) return forget(from);
  from.peer = &peers_[hello.from];
  from.peer->in.push_back(&from);
}

void TcpNetwork::read(Incoming& from) {
  if (from.peer == nullptr) identify(from);
  std::size_t budget = most_at_a_time;
  while (from.peer != nullptr && !from.peer->lost && budget > 0) {
    Peer& peer = *from.peer;
    Frame frame;
    auto state = from.receiver.read_frame(frame);
    if (state == TcpReceiver::State::ready && frame.sequence > peer.next_in) {
      from.paused = true;
      return watch(from.receiver.fd(), 0, &from, EPOLL_CTL_MOD);
    }
    if (state == TcpReceiver::State::ready) {
      const bool is_chunk = frame.kind == FrameKind::chunk;
      if (frame.sequence < peer.next_in || (!std::exchange(from.begun, true) && is_chunk &&
                                            !events_->begin(peer.rank, frame.chunk, frame.bytes)))
        return lose(peer);
      state = from.receiver.read_bytes([&](std::size_t done) {
        return is_chunk ? events_->place(peer.rank, frame.chunk, done) : nullptr;
      });
    }
    if (state == TcpReceiver::State::more) return;
    if (state == TcpReceiver::State::gone) {
      if (peer.left) return forget(from);
      return lose(peer);
    }
    budget -= std::min<std::size_t>(budget, sizeof frame + frame.bytes);
    from.receiver.finish();
    from.begun = false;
    ++peer.next_in;
    take_frame(from, frame);
  }
  if (from.peer != nullptr && !from.peer->lost && from.receiver.has_more())
    unfinished_.push_back(&from);
}

void TcpNetwork::take_frame(Incoming& from, const Frame& frame) {
  Peer& peer = *from.peer;
  if (frame.kind == FrameKind::goodbye) {
    peer.left = true;
    from.receiver.say_farewell();
    events_->left(peer.rank, frame.chunk.offset > peers_.size()
                                 ? -1
                                 : static_cast<Rank>(frame.chunk.offset) - 1);
  } else {
    events_->arrived(peer.rank, frame.chunk, frame.bytes);
  }
  resume_next(peer);
}

// The next frame may have come by a connection that was not in its turn.
void TcpNetwork::resume_next(Peer& peer) {
  for (Incoming* other : peer.in) {
    Frame next;
    if (!other->paused || other->receiver.read_frame(next) != TcpReceiver::State::ready ||
        next.sequence != peer.next_in)
      continue;
    other->paused = false;
    watch(other->receiver.fd(), EPOLLIN, other, EPOLL_CTL_MOD);
    unfinished_.push_back(other);
  }
}

bool TcpNetwork::progress() {
  bool moved = false;
  const std::vector<Incoming*> unfinished = std::exchange(unfinished_, {});
  for (Incoming* from : unfinished) {
    moved = true;
    if (from->receiver.fd() >= 0) read(*from);
  }
  std::array<epoll_event, events_at_a_time> ready;
  const int count = epoll_wait(poll_.get(), ready.data(), events_at_a_time, 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready.at(static_cast<std::size_t>(i));
    handle(event.data.ptr, event.events);
  }
  bury();
  return moved || count > 0;
}

void TcpNetwork::handle(void* who, std::uint32_t events) {
  if (who == nullptr) return accept_all();
  if (!is_sender(who)) {
    auto& from = *static_cast<Incoming*>(who);
    if (from.receiver.fd() < 0) return;
    if (!from.paused) return read(from);
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) lose(*from.peer);  // its frames will never be whole
    return;
  }
  auto& out = *reinterpret_cast<Outgoing*>(static_cast<char*>(who) - 1);
  if (out.sender.fd() < 0) return;
  switch (out.sender.listen()) {
    case TcpSender::Word::gone:
      if (!out.peer->left && !out.peer->answered) return lose(*out.peer);
      unwatch(out.sender.fd());
      return out.sender.drop([this](std::uint64_t request) { events_->sent(request); });
    case TcpSender::Word::farewell:
      out.peer->answered = true;
      break;
    case TcpSender::Word::nothing:
      break;
  }
  write(out);
}

bool TcpNetwork::arm() {
  return unfinished_.empty();
}

// ---------------------------------------------------------------------------- ends

void TcpNetwork::forget(Incoming& from) {
  if (from.peer != nullptr) std::erase(from.peer->in, &from);
  std::erase(unfinished_, &from);
  const auto at = std::ranges::find(incoming_, &from, [](const Incoming& each) { return &each; });
  unwatch(at->receiver.fd());
  at->receiver = TcpReceiver(Descriptor());
  dead_in_.splice(dead_in_.end(), incoming_, at);
}

void TcpNetwork::lose(Peer& peer) {
  if (std::exchange(peer.lost, true)) return;
  const auto sent = [this](std::uint64_t request) {
    if (events_ != nullptr) events_->sent(request);
  };
  if (events_ != nullptr) events_->lost(peer.rank);  // first: what was not sent must not look sent
  for (auto& out : peer.out) {
    unwatch(out->sender.fd());
    out->sender.drop(sent);
    dead_out_.push_back(std::move(out));
  }
  peer.out.clear();
  while (!peer.in.empty()) forget(*peer.in.back());
}

void TcpNetwork::bury() {
  dead_out_.clear();
  dead_in_.clear();
}

void TcpNetwork::abandon(Rank rank) {
  lose(peers_[static_cast<std::size_t>(rank)]);
}

void TcpNetwork::leave(Rank culprit, Deadline deadline, const std::function<bool(Rank)>& failed) {
  const Frame goodbye{
      .kind = FrameKind::goodbye,
      .bytes = 0,
      .sequence = 0,
      .chunk = {.tag = {}, .bytes = 0, .offset = static_cast<std::uint64_t>(culprit + 1)}};
  // Also to those who have only ever sent to us: else they would see their connection end and could
  // not tell that from a death.
  for (Peer& peer : peers_) {
    if (peer.lost || (peer.out.empty() && (peer.in.empty() || peer.left))) continue;
    if (peer.out.empty()) connect(peer);
    post(peer, goodbye, {}, 0, nullptr);
  }
  const auto waiting = [&](const Peer& peer) {
    return !peer.out.empty() && !peer.lost && !peer.answered && !peer.left && !failed(peer.rank);
  };
  while (Clock::now() < deadline && std::ranges::any_of(peers_, waiting))
    if (!progress()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  // Those who have left before us may still wait for our farewell.
  progress();
}

}  // namespace riffle::engine
