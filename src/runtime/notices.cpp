#include "runtime/notices.h"

#include <fmt/format.h>

#include <thread>

namespace riffle::runtime {
namespace {

constexpr std::uint64_t kChannel = 0x7269'6666'6c65'0001;
constexpr std::chrono::microseconds kPause{200};

}  // namespace

Notices::Notices(Engine& engine, const Group& ranks, std::uint64_t session)
    : engine_(engine),
      tag_{kChannel ^ session, 0, 0},
      received_(static_cast<std::size_t>(ranks.size()), -1) {
  for (const Rank rank : ranks)
    if (rank != engine.rank()) peers_.push_back({.rank = rank, .request = {}});
  listen();
}

Notices::~Notices() {
  for (Peer& peer : peers_)
    if (!peer.request.empty()) engine_.cancel(peer.request);
}

void Notices::listen() {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    auto into = std::as_writable_bytes(std::span(received_).subspan(i, 1));
    peers_[i].request = engine_.receive(peers_[i].rank, tag_, into);
    peers_[i].ended_after = -1;
  }
}

void Notices::look(Peer& peer) {
  if (peer.request.empty()) return;
  try {
    if (engine_.test(peer.request)) peer.ended_after = received_[&peer - peers_.data()];
  } catch (const CommError&) {
    // Its failure is told by check().
  }
}

void Notices::tell(Step steps) {
  told_ = steps;
  for (const Peer& peer : peers_)
    if (!engine_.failure(peer.rank))
      sends_.push_back(engine_.send(peer.rank, tag_, std::as_bytes(std::span(&told_, 1))));
}

bool Notices::all_ended() {
  bool all = true;
  // All of them are looked at each time: a look moves messages along.
  for (Peer& peer : peers_) {
    look(peer);
    if (!peer.request.empty() && !engine_.failure(peer.rank)) all = false;
  }
  return all;
}

void Notices::finish_sends() {
  for (Request& send : sends_) {
    try {
      if (!engine_.test(send)) engine_.cancel(send);
    } catch (const CommError&) {
      // Whoever is gone needs no notice.
    }
  }
  sends_.clear();
}

void Notices::end(Step steps, Seconds patience) {
  tell(steps);
  const Deadline deadline = after(patience);
  while (!all_ended() && Clock::now() < deadline) std::this_thread::sleep_for(kPause);
  finish_sends();
}

void Notices::meet(Step steps, Seconds timeout) {
  const CommContext context{.operation = "finish", .step = steps};
  tell(steps);
  const Deadline deadline = after(timeout);
  while (!all_ended()) {
    if (Clock::now() > deadline)
      throw CommError(CommFailure::timed_out, -1, "", context,
                      fmt::format("not all ranks came within {}", print(timeout)));
    std::this_thread::sleep_for(kPause);
  }
  finish_sends();
  for (const Peer& peer : peers_) {
    if (peer.ended_after < 0) throw_if_failed(engine_, peer.rank, context);
    if (peer.ended_after != steps)
      throw CommError(
          CommFailure::aborted, peer.rank, engine_.host(peer.rank), context,
          fmt::format("it ended after {} steps, this rank after {}", peer.ended_after, steps));
  }
  ++tag_.sequence;
  listen();
}

void Notices::check(const CommContext& context) {
  for (Peer& peer : peers_) {
    look(peer);
    if (peer.ended_after > context.step) continue;
    if (peer.ended_after >= 0)
      throw CommError(CommFailure::aborted, peer.rank, engine_.host(peer.rank), context,
                      fmt::format("it ended its session after {} steps", peer.ended_after));
    throw_if_failed(engine_, peer.rank, context);
  }
}

}  // namespace riffle::runtime
