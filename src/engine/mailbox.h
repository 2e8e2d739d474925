// Matches messages with receives. Messages travel as byte streams, one ring for each ordered pair
// of ranks; whatever arrives without a receive waiting for it is kept until there is one.
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

#include "engine/ring.h"
#include "riffle/engine.h"

namespace riffle {

class Mailbox {
 public:
  struct Peer {
    Ring* out = nullptr;  // from us
    Ring* in = nullptr;   // to us
  };
  enum class Outcome { pending, done, wrong_size };
  struct State {
    Outcome outcome = Outcome::pending;
    Rank peer = 0;
    bool is_send = false;
    std::size_t expected = 0;  // of wrong_size
    std::size_t arrived = 0;
  };

  // `wake` is told that bytes went to, or room came free for, a rank; for ourselves that a request
  // of another thread may be done. `failed` says whether a rank is.
  Mailbox(Rank self, std::vector<Peer> peers, std::function<void(Rank)> wake,
          std::function<bool(Rank)> failed);

  std::uint64_t send(Rank to, Tag tag, std::span<const std::byte> data);
  std::uint64_t receive(Rank from, Tag tag, std::span<std::byte> data);
  // Moves all messages along.
  void progress();
  // How a request stands; one that is not pending is forgotten by this call.
  State take(std::uint64_t id);
  [[nodiscard]] bool is_pending(std::uint64_t id);
  [[nodiscard]] Rank peer(std::uint64_t id);
  void cancel(std::uint64_t id);

 private:
  struct Record {
    State state;
    Tag tag;
    std::span<const std::byte> out;
    std::span<std::byte> in;
    bool begun = false;
  };
  struct Outgoing {
    std::uint64_t id = 0;  // 0: its owner has given it up
    Tag tag;
    std::span<const std::byte> data;
    std::vector<std::byte> copy;  // of a message that was given up half sent
    std::size_t sent = 0;
    bool header_sent = false;
  };
  struct Message {  // arriving, or kept
    Tag tag;
    std::size_t bytes = 0;
    std::size_t arrived = 0;
    std::uint64_t id = 0;  // of the receive it goes to; 0: kept
    bool dropped = false;
    std::vector<std::byte> kept;
  };
  struct Wire {
    Peer rings;
    std::deque<Outgoing> outgoing;
    std::shared_ptr<Message> incoming;
    bool closed = false;  // failed, and what came before that was read
  };
  using Key = std::pair<Rank, Tag>;

  bool push(Wire& wire);
  bool pull(Rank from, Wire& wire);
  std::shared_ptr<Message> begin(Rank from, Tag tag, std::size_t bytes);
  void finish(Message& message);
  void deliver_kept(std::uint64_t id, Record& record, Message& message);

  Rank self_;
  std::function<void(Rank)> wake_;
  std::function<bool(Rank)> failed_;
  std::mutex mutex_;
  // All below: under mutex_.
  std::vector<Wire> wires_;
  std::uint64_t next_ = 1;
  std::unordered_map<std::uint64_t, Record> records_;
  std::map<Key, std::deque<std::uint64_t>> waiting_;                // receives
  std::map<Key, std::deque<std::shared_ptr<Message>>> unexpected_;  // messages, maybe arriving
  bool completed_ = false;                                          // something, since last told
};

}  // namespace riffle
