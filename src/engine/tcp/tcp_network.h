// The network over sockets of TCP. A rank connects to those it sends to, by one connection, or by
// several where the way is so long that one, with the buffers that kernels allow by default, could
// not fill it. Frames are taken in the order in which they were sent, whichever connection they
// came by: one that is not next stays in its socket until its turn.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "engine/tcp/receiver.h"
#include "engine/tcp/sender.h"

namespace riffle::engine {

class TcpNetwork final : public Network {
 public:
  explicit TcpNetwork(const NetworkOptions& options);
  ~TcpNetwork() override;
  TcpNetwork(const TcpNetwork&) = delete;
  TcpNetwork& operator=(const TcpNetwork&) = delete;

  [[nodiscard]] std::string address() const override;
  void open(std::vector<std::string> addresses, Events& events) override;
  [[nodiscard]] std::size_t chunk_bytes(Rank to) const override;
  [[nodiscard]] bool has_room(Rank to) const override;
  void send(Rank to, const Chunk& chunk, std::span<const std::byte> data, std::uint64_t request,
            std::shared_ptr<const void> keep) override;
  [[nodiscard]] std::size_t bytes_on_the_way(Rank to) const override;
  bool progress() override;
  void abandon(Rank peer) override;
  void leave(Rank culprit, Deadline deadline, const std::function<bool(Rank)>& failed) override;
  [[nodiscard]] int event_fd() const override { return poll_.get(); }
  [[nodiscard]] bool arm() override;

 private:
  // Who an event of a socket is for.
  struct Peer;
  struct Outgoing {
    Peer* peer;
    TcpSender sender;
    bool watched = false;  // for room
  };
  struct Incoming {
    Peer* peer = nullptr;  // not known yet
    TcpReceiver receiver;
    bool paused = false;  // its next frame is not the next of its peer
    bool begun = false;   // the bytes of its frame have a place
  };
  struct Peer {
    Rank rank = 0;
    std::string address;
    std::vector<std::unique_ptr<Outgoing>> out;
    std::vector<Incoming*> in;
    std::uint64_t next_out = 0;
    std::uint64_t next_in = 0;
    bool lost = false;
    bool left = false;      // it has said goodbye
    bool answered = false;  // our goodbye
  };

  void watch(int fd, std::uint32_t events, void* who, int operation) const;
  void unwatch(int fd) const;
  void connect(Peer& peer);
  void connect_more(Peer& peer);
  [[nodiscard]] Outgoing* roomiest(const Peer& peer) const;
  void post(Peer& peer, const Frame& frame, std::span<const std::byte> data, std::uint64_t request,
            std::shared_ptr<const void> keep);
  void write(Outgoing& out);
  void accept_all();
  void identify(Incoming& from);
  void read(Incoming& from);
  void take_frame(Incoming& from, const Frame& frame);
  void resume_next(Peer& peer);
  void forget(Incoming& from);
  void lose(Peer& peer);
  void handle(void* who, std::uint32_t events);
  void bury();

  NetworkOptions options_;
  Descriptor listener_;
  Descriptor poll_;
  Events* events_ = nullptr;
  std::vector<Peer> peers_;            // by rank
  std::list<Incoming> incoming_;       // stable addresses
  std::vector<Incoming*> unfinished_;  // with bytes that no event tells of
  // What events of this round may still name.
  std::vector<std::unique_ptr<Outgoing>> dead_out_;
  std::list<Incoming> dead_in_;
};

}  // namespace riffle::engine
