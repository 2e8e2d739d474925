// Matches messages with receives. Messages travel as byte streams, one ring for each ordered pair
// of ranks of a host, in chunks over the network to the others; whatever arrives without a receive
// waiting for it is kept until there is one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/network.h"
#include "engine/ring.h"
#include "riffle/engine.h"

namespace riffle::engine {

class Mailbox final : private Network::Events {
 public:
  struct Peer {
    Ring* out = nullptr;  // from us
    Ring* in = nullptr;   // to us
    std::string address;  // on the network, where there are no rings
  };
  // What the mailbox asks and tells; called with its mutex held, but for `wake`.
  struct Callbacks {
    // Bytes went to, or room came free for, a rank of this host; for ourselves that a request of
    // another thread may be done.
    std::function<void(Rank)> wake;
    // Whether a rank has failed.
    std::function<bool(Rank)> failed;
    // What the network says of a rank: that it has been heard; that it has left in good order, and
    // whom it had found failed (-1: nobody); that it is gone.
    std::function<void(Rank)> heard = [](Rank) {};
    std::function<void(Rank, Rank)> left = [](Rank, Rank) {};
    std::function<void(Rank)> lost = [](Rank) {};
  };
  enum class Outcome { pending, done, wrong_size };
  struct State {
    Outcome outcome = Outcome::pending;
    Rank peer = 0;
    bool is_send = false;
    std::size_t expected = 0;  // of wrong_size
    std::size_t arrived = 0;
  };

  // The network must outlive it; null where all ranks have rings.
  Mailbox(Rank self, std::vector<Peer> peers, Network* network, Callbacks callbacks);

  std::uint64_t send(Rank to, Tag tag, std::span<const std::byte> data);
  std::uint64_t receive(Rank from, Tag tag, std::span<std::byte> data);
  // Moves all messages along.
  void progress();
  // How a request stands; one that is not pending is forgotten by this call.
  State take(std::uint64_t id);
  [[nodiscard]] bool is_pending(std::uint64_t id);
  [[nodiscard]] Rank peer(std::uint64_t id);
  void cancel(std::uint64_t id);
  // Makes the network's descriptor tell of news; false when there is something to do now.
  [[nodiscard]] bool arm();
  // As Network::bytes_on_the_way.
  [[nodiscard]] std::size_t bytes_on_the_way(Rank to);
  // Lets the network say goodbye, with the rank that we have found failed (-1: none); nothing is
  // sent afterwards.
  void leave(Rank culprit, Deadline deadline);

 private:
  struct Record {
    State state;
    Tag tag;
    std::span<const std::byte> out;
    std::span<std::byte> in;
    bool begun = false;
    bool posted = false;  // of a send: all of it is with the network
    int in_flight = 0;    // chunks of it that the network still reads
  };
  struct Outgoing {
    std::uint64_t id = 0;  // 0: its owner has given it up
    Tag tag;
    std::span<const std::byte> data;
    std::shared_ptr<std::vector<std::byte>> copy;  // of a message that was given up half sent
    std::size_t sent = 0;
    bool header_sent = false;
  };
  // Bytes whose first values do not matter; writing zeros first would cost as much as the message.
  template <typename T>
  struct Unset : std::allocator<T> {
    template <typename U>
    struct rebind {
      using other = Unset<U>;
    };
    template <typename U>
    void construct(U* at) {
      ::new (static_cast<void*>(at)) U;
    }
    template <typename U, typename... Args>
    void construct(U* at, Args&&... args) {
      ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
    }
  };
  using Bytes = std::vector<std::byte, Unset<std::byte>>;
  struct Message {  // arriving, or kept
    Tag tag;
    std::size_t bytes = 0;
    std::size_t arrived = 0;
    std::uint64_t id = 0;  // of the receive it goes to; 0: kept
    bool dropped = false;
    Bytes kept;
  };
  struct Wire {
    Peer peer;
    std::deque<Outgoing> outgoing;
    std::shared_ptr<Message> incoming;                        // by the ring
    std::map<Tag, std::shared_ptr<Message>> incoming_by_tag;  // over the network
    std::uint64_t last_channel = 0;                           // that had its turn there
    bool closed = false;  // failed, and what came before that was read
    bool left = false;    // in good order, says the network
    [[nodiscard]] bool remote() const { return !peer.address.empty(); }
  };
  using Key = std::pair<Rank, Tag>;

  bool begin(Rank from, const Chunk& chunk, std::size_t bytes) override;
  std::byte* place(Rank from, const Chunk& chunk, std::size_t done) override;
  void arrived(Rank from, const Chunk& chunk, std::size_t bytes) override;
  void sent(std::uint64_t request) override;
  void left(Rank peer, Rank culprit) override;
  void lost(Rank peer) override;

  bool push(Rank to, Wire& wire);  // whether a rank of this host should look
  bool push_ring(Wire& wire);
  void push_network(Rank to, Wire& wire);
  void pull_network();
  static std::deque<Outgoing>::iterator next_in_turn(Wire& wire);
  bool pull(Rank from, Wire& wire);
  void close(Rank rank, Wire& wire);
  void withdraw(std::uint64_t id, Wire& wire);
  void forget(std::uint64_t id);
  std::byte* place(Message& message, std::size_t bytes);
  std::byte* place_at(Message& message, std::size_t offset);
  void recycle(Bytes bytes);
  std::shared_ptr<Message> begin(Rank from, Tag tag, std::size_t bytes);
  void finish(Message& message);
  void deliver_kept(std::uint64_t id, Record& record, Message& message);

  Rank self_;
  Network* network_;
  Callbacks callbacks_;
  std::mutex mutex_;
  // All below: under mutex_.
  std::vector<Wire> wires_;
  std::uint64_t next_ = 1;
  std::unordered_map<std::uint64_t, Record> records_;
  std::map<Key, std::deque<std::uint64_t>> waiting_;                // receives
  std::map<Key, std::deque<std::shared_ptr<Message>>> unexpected_;  // messages, maybe arriving
  std::vector<Bytes> spare_;                                        // memory for messages to keep
  bool completed_ = false;                                          // something, since last told
};

}  // namespace riffle::engine
