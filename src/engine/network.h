// What carries messages to ranks of other hosts. A message travels in chunks; a network delivers
// the chunks of one sender once, whole and in the order in which they were sent, or loses the peer.
//
// Calls come from one thread at a time (the Mailbox's mutex); Events are called inside them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "riffle/engine.h"

namespace riffle::engine {

// Travels in front of a chunk's bytes.
struct Chunk {
  Tag tag;
  std::uint64_t bytes = 0;   // of the whole message
  std::uint64_t offset = 0;  // of the chunk in it
};

class Network {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    // A chunk of so many bytes begins to arrive. False when it cannot be part of what the peer has
    // sent before, which loses the peer.
    virtual bool begin(Rank from, const Chunk& chunk, std::size_t bytes) = 0;
    // Where its bytes from `done` on go; null: nobody wants them. Valid until the next call that is
    // not one of the network's.
    virtual std::byte* place(Rank from, const Chunk& chunk, std::size_t done) = 0;
    // All of its bytes are in place.
    virtual void arrived(Rank from, const Chunk& chunk, std::size_t bytes) = 0;
    // A chunk of this request no longer needs its memory.
    virtual void sent(std::uint64_t request) = 0;
    // The peer has closed its engine in good order; nothing comes after this. `culprit` is a rank
    // that it had found failed before, -1 where there was none.
    virtual void left(Rank peer, Rank culprit) = 0;
    // The connection is gone.
    virtual void lost(Rank peer) = 0;
  };

  virtual ~Network() = default;

  // What the others need to reach us.
  [[nodiscard]] virtual std::string address() const = 0;
  // Before any other call: by rank, empty for ranks that are not reached this way; not ourselves.
  virtual void open(std::vector<std::string> addresses, Events& events) = 0;

  // Chunks for this rank may be this large at present.
  [[nodiscard]] virtual std::size_t chunk_bytes(Rank to) const = 0;
  // Whether a chunk may be sent now.
  [[nodiscard]] virtual bool has_room(Rank to) const = 0;
  // Starts to send; connects on first use. `data` must stay until Events::sent(request), which may
  // come at once; `keep` is released then. A lost peer takes and drops everything.
  virtual void send(Rank to, const Chunk& chunk, std::span<const std::byte> data,
                    std::uint64_t request, std::shared_ptr<const void> keep) = 0;
  // How much is on the way to a rank when the way is full: its latency times its rate, as far as
  // they are known; 0: not known.
  [[nodiscard]] virtual std::size_t bytes_on_the_way(Rank to) const = 0;
  // Moves a few bytes; whether there were any.
  virtual bool progress() = 0;
  // Cuts the connection: afterwards nothing touches what was being sent.
  virtual void abandon(Rank peer) = 0;
  // Says goodbye to all who are connected to us or we to them, after everything sent so far, and
  // waits until they have it, are gone or have failed. `culprit` is a rank that we have found
  // failed, or -1.
  virtual void leave(Rank culprit, Deadline deadline, const std::function<bool(Rank)>& failed) = 0;

  // Readable when there is something to do, from the moment arm() returned true.
  [[nodiscard]] virtual int event_fd() const = 0;
  // False: there is something to do now.
  [[nodiscard]] virtual bool arm() = 0;
};

struct NetworkOptions {
  Rank self = 0;
  int size = 1;
  // Random bits that only members of the job know; what does not carry them is dropped.
  std::uint64_t session = 0;
  // Where data ports are opened, and nowhere else: its name and its IPv4 address.
  std::string interface;
  std::string ip;
};
// The network over sockets of TCP.
std::unique_ptr<Network> make_tcp_network(const NetworkOptions& options);
// The network over UCX. UsageError where this build or host has none.
std::unique_ptr<Network> make_ucx_network(const NetworkOptions& options);

}  // namespace riffle::engine
