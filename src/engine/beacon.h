// Heartbeats between hosts: small UDP packets from rank to rank, on the interface that carries the
// data. They are apart from the data's connections, so that neither a full connection nor a busy
// transport can hide whether a peer is alive.
//
// What is heard is written where ranks of one host would write it themselves, into a SegmentHeader
// per rank, so that Liveness judges near and far alike.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "engine/layout.h"
#include "riffle/engine.h"

namespace riffle::engine {

class Beacon {
 public:
  // Opens a port on a local numeric IPv4 address, and nowhere else. `session` is what only members
  // of the job know; packets without it are dropped.
  Beacon(Rank self, const std::string& address, std::uint64_t session);

  // Where the others send to, as "198.18.0.2:40000".
  [[nodiscard]] std::string address() const;
  // By rank; empty for ranks of our own host. headers[r] takes what is heard of rank r.
  void open(const std::vector<std::string>& addresses, std::vector<SegmentHeader*> headers);

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] int peers() const;
  // Whether it is one of them: a rank of another host.
  [[nodiscard]] bool reaches(Rank rank) const {
    return peers_[static_cast<std::size_t>(rank)].there;
  }
  // One packet to everybody. A rank that we have declared failed is told so.
  void beat();
  // Takes what has come. `died` is told of ranks whose host says that nobody listens any more,
  // `deaf` of those that no longer hear us.
  void listen(const std::function<void(Rank)>& died, const std::function<void(Rank)>& deaf);
  // Tells all who are there that we leave in good order, until they know or the time is up.
  void leave(Deadline deadline);

 private:
  enum class Kind : std::uint8_t { beat, goodbye, farewell };
  struct Packet {
    std::uint64_t session = 0;
    std::uint32_t from = 0;
    Kind kind = Kind::beat;
    std::uint8_t failed = 0;  // the receiver counts as failed with the sender
    std::uint16_t unused = 0;
  };
  struct Peer {
    bool there = false;
    bool gone = false;  // nobody listens there any more, or it knows that we leave
    sockaddr_in address{};
  };

  void send(Rank to, Kind kind);
  void take(const Packet& packet, const std::function<void(Rank)>& deaf);
  void take_errors(const std::function<void(Rank)>& died);

  Rank self_;
  std::uint64_t session_;
  Descriptor socket_;
  std::vector<Peer> peers_;
  std::vector<SegmentHeader*> headers_;
};

}  // namespace riffle::engine
