// One connection to a peer: takes frames, gives them to the kernel as it has room.
#pragma once

#include <sys/socket.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/descriptor.h"
#include "engine/tcp/frames.h"

namespace riffle::engine {

class TcpSender {
 public:
  // Begins to connect; `address` is "ip:port".
  TcpSender(const std::string& address, const Hello& hello);

  [[nodiscard]] int fd() const { return socket_.get(); }
  // Whether another frame may come: little waits here, so that much is never ahead of its turn.
  [[nodiscard]] bool has_room() const { return queue_.size() < (shares_ ? 1 : most_waiting); }
  [[nodiscard]] bool is_connected() const { return connected_; }
  [[nodiscard]] bool has_work() const { return !queue_.empty() || !connected_; }
  // It carries a stream together with others: what one has taken and cannot send yet holds up the
  // frames of all, so that it takes as little as possible ahead.
  void share();
  // `request` is told to the function of write() when its bytes are with the kernel.
  void push(const Frame& frame, std::span<const std::byte> data, std::uint64_t request,
            std::shared_ptr<const void> keep);
  // Gives the kernel what it takes; false when the connection is broken.
  bool write(const std::function<void(std::uint64_t)>& sent);
  // What the peer says: nothing, a farewell, or that it is gone.
  enum class Word { nothing, farewell, gone };
  Word listen();
  // Ends the connection; these requests have not been sent.
  void drop(const std::function<void(std::uint64_t)>& sent);

  // As the kernel has seen it so far: the shortest round trip, and the greatest rate.
  [[nodiscard]] Seconds round_trip() const { return round_trip_; }
  [[nodiscard]] double bytes_per_second() const { return rate_; }

 private:
  static constexpr std::size_t most_waiting = 2;
  struct Waiting {
    Frame frame;
    std::span<const std::byte> data;
    std::uint64_t request = 0;
    std::shared_ptr<const void> keep;
  };
  void advance(std::size_t bytes, const std::function<void(std::uint64_t)>& sent);
  void look_at_the_kernel();
  void let_the_kernel_take(int bytes) const;

  Descriptor socket_;
  Hello hello_;
  std::size_t hello_sent_ = 0;
  bool connected_ = false;
  bool shares_ = false;
  std::deque<Waiting> queue_;
  std::size_t front_sent_ = 0;  // of the front's frame and data
  int until_look_ = 1;          // frames
  Seconds round_trip_{};
  double rate_ = 0;
};

}  // namespace riffle::engine
