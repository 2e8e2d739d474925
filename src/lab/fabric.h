// The network as a pure machine over (time, packet): no clock, no device, the same every time.
//
// A packet waits at each port of its path, leaves when the port is free, takes payload / bandwidth
// of the port's time, and its head is at the next port the link's latency later: a receiver's link
// is taken only when the head is there, never while the packet still queues at its sender. It is
// delivered when its last byte has arrived. Headers cost nothing: a link's bandwidth is payload
// rate, what iperf3 shows.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "lab/fair_queue.h"
#include "lab/wiring.h"
#include "riffle/random.h"

namespace riffle::lab {

// What a port has done. Packets are segments, as they would be on a wire.
struct Counters {
  std::int64_t bytes = 0;  // payload
  std::int64_t packets = 0;
  std::int64_t dropped = 0;       // the queue was full, or the link cut
  std::int64_t lost = 0;          // by chance
  std::int64_t most_waiting = 0;  // bytes
  Nanoseconds busy = 0;
};

class Fabric {
 public:
  static constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();
  using Deliver = std::function<void(const Packet&, Nanoseconds due)>;

  explicit Fabric(Wiring wiring, std::uint64_t seed = 1);

  // packet.from sends it.
  void send(Packet packet, Nanoseconds now);
  // When run() has something to do.
  [[nodiscard]] Nanoseconds next() const { return events_.empty() ? never : events_.top().at; }
  // All that happens up to now.
  void run(Nanoseconds now, const Deliver& deliver);

  // Changes of one port; what is being sent is not affected.
  void set_bandwidth(int port, double bytes_per_second);
  void set_latency(int port, Nanoseconds latency);
  void set_jitter(int port, Nanoseconds most);
  void set_loss(int port, double share);
  void set_load(int port, double bytes_per_second, Nanoseconds now);
  void cut(int port);
  void repair(int port);

  [[nodiscard]] const Wiring& wiring() const { return wiring_; }
  [[nodiscard]] const Counters& counters(int port) const { return state(port).counters; }

 private:
  enum class Kind { arrive, free, others, deliver };
  struct Event {
    Nanoseconds at = 0;
    std::uint64_t order = 0;  // of those at one time the first pushed comes first
    Kind kind = Kind::arrive;
    int port = 0;
    int packet = 0;  // of Kind::others: the load's number
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct State {
    explicit State(std::int64_t quantum) : fair(quantum) {}
    FairQueue fair;
    std::deque<int> line;  // where flows are not told apart; of a fair port: of others
    std::int64_t waiting = 0;
    bool busy = false;
    bool is_cut = false;
    Nanoseconds jitter = 0;
    Nanoseconds last_out = 0;  // with jitter: nothing overtakes
    double loss = 0;
    double load = 0;
    int load_number = 0;
    Counters counters;
  };

  [[nodiscard]] const State& state(int port) const {
    return states_[static_cast<std::size_t>(port)];
  }
  State& state(int port) { return states_[static_cast<std::size_t>(port)]; }
  Packet& packet(int id) { return packets_[static_cast<std::size_t>(id)]; }
  int keep(Packet packet);
  void forget(int id);
  void push(Nanoseconds at, Kind kind, int port, int packet);
  void arrive(int port, int id, Nanoseconds at);
  // What is left of a packet without the segments that are gone.
  void enqueue_rest(int port, int id, const std::vector<bool>& gone, Nanoseconds at);
  void enqueue(int port, int id, Nanoseconds at);
  void start(int port, int id, Nanoseconds at);
  void start_next(int port, Nanoseconds at);
  int take(int port);
  void clear(int port);
  void send_of_others(int port, int number, Nanoseconds at);

  Wiring wiring_;
  Random random_;
  std::vector<State> states_;
  std::deque<Packet> packets_;
  std::vector<int> unused_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
};

}  // namespace riffle::lab
