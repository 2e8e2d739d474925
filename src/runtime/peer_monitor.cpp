#include "runtime/peer_monitor.h"

#include <fmt/format.h>

#include <thread>

namespace riffle::runtime {
namespace {

constexpr std::uint64_t kChannel = 0x7269'6666'6c65'0001;
constexpr std::chrono::microseconds kPause{200};

std::string ended(const Ending& ending) {
  return fmt::format("it ended its session after {} steps", ending.steps);
}

}  // namespace

PeerMonitor::PeerMonitor(Engine& engine, const Group& ranks, std::uint64_t session)
    : engine_(engine), tag_{kChannel ^ session, 0, 0} {
  for (const Rank rank : ranks)
    if (rank != engine.rank())
      peers_.push_back({.rank = rank, .request = {}, .received = {}, .ending = {}});
  listen();
}

PeerMonitor::~PeerMonitor() {
  for (Peer& peer : peers_)
    if (!peer.request.empty()) engine_.cancel(peer.request);
}

void PeerMonitor::listen() {
  for (Peer& peer : peers_) {
    peer.ending = {};
    peer.request =
        engine_.receive(peer.rank, tag_, std::as_writable_bytes(std::span(&peer.received, 1)));
  }
}

void PeerMonitor::look(Peer& peer) {
  if (peer.request.empty()) return;
  try {
    if (engine_.test(peer.request)) peer.ending = peer.received;
  } catch (const CommError&) {
    // It is gone without a word; the engine knows why.
  }
}

void PeerMonitor::tell(const Ending& ending) {
  told_ = ending;
  for (const Peer& peer : peers_)
    if (!engine_.failure(peer.rank))
      sends_.push_back(engine_.send(peer.rank, tag_, std::as_bytes(std::span(&told_, 1))));
}

bool PeerMonitor::all_ended() {
  bool all = true;
  // All of them are looked at each time: a look moves messages along.
  for (Peer& peer : peers_) {
    look(peer);
    if (!peer.request.empty() && !engine_.failure(peer.rank)) all = false;
  }
  return all;
}

void PeerMonitor::finish_sends() {
  for (Request& send : sends_) {
    try {
      if (!engine_.test(send)) engine_.cancel(send);
    } catch (const CommError&) {
      // Whoever is gone need not be told.
    }
  }
  sends_.clear();
}

void PeerMonitor::end(const Ending& ending, Seconds patience) {
  const std::scoped_lock lock(mutex_);
  tell(ending);
  const Deadline deadline = after(patience);
  while (!all_ended() && Clock::now() < deadline) std::this_thread::sleep_for(kPause);
  finish_sends();
}

void PeerMonitor::meet(Step steps, Seconds timeout) {
  const std::scoped_lock lock(mutex_);
  const CommContext context{.operation = "finish", .step = steps};
  tell({.steps = steps});
  const Deadline deadline = after(timeout);
  while (!all_ended()) {
    if (Clock::now() > deadline)
      throw CommError(CommFailure::timed_out, -1, "", context,
                      fmt::format("not all ranks came within {}", print(timeout)));
    std::this_thread::sleep_for(kPause);
  }
  finish_sends();
  for (Peer& peer : peers_) throw_culprit(peer, context);
  for (const Peer& peer : peers_) {
    if (peer.ending.steps < 0) throw_if_failed(engine_, peer.rank, context);
    if (peer.ending.culprit == engine_.rank())
      throw CommError(
          CommFailure::aborted, peer.rank, engine_.host(peer.rank), context,
          fmt::format("it waited for this rank in step {}, and gave up", peer.ending.steps));
    if (peer.ending.steps != steps)
      throw CommError(
          CommFailure::aborted, peer.rank, engine_.host(peer.rank), context,
          fmt::format("it ended after {} steps, this rank after {}", peer.ending.steps, steps));
  }
  ++tag_.sequence;
  listen();
}

void PeerMonitor::throw_culprit(const Peer& peer, const CommContext& context) {
  const Ending& ending = peer.ending;
  if (ending.steps < 0 || ending.culprit < 0 || ending.culprit == engine_.rank()) return;
  std::string detail = fmt::format("as rank {} saw it", peer.rank);
  for (Peer& culprit : peers_) {
    if (culprit.rank != ending.culprit) continue;
    look(culprit);
    if (culprit.ending.steps >= 0) detail = ended(culprit.ending);
  }
  throw CommError(ending.failure, ending.culprit, engine_.host(ending.culprit), context, detail);
}

void PeerMonitor::check(const CommContext& context) {
  const std::scoped_lock lock(mutex_);
  for (Peer& peer : peers_) {
    look(peer);
    throw_culprit(peer, context);
  }
  for (const Peer& peer : peers_)
    if (peer.ending.steps < 0) throw_if_failed(engine_, peer.rank, context);
  for (const Peer& peer : peers_)
    if (peer.ending.steps >= 0 && peer.ending.steps <= context.step)
      throw CommError(CommFailure::aborted, peer.rank, engine_.host(peer.rank), context,
                      ended(peer.ending));
}

CommError PeerMonitor::first_cause(const CommError& error) {
  const std::scoped_lock lock(mutex_);
  for (Peer& peer : peers_) {
    if (peer.rank != error.rank()) continue;
    look(peer);
    try {
      throw_culprit(peer, {.group = &error.group(),
                           .operation = error.operation(),
                           .bucket = error.bucket(),
                           .step = error.step()});
    } catch (const CommError& first) {
      return first;
    }
  }
  return error;
}

}  // namespace riffle::runtime
