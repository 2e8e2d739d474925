// How the processes of a job on one host find each other: rank 0 listens on a socket without a file
// (Linux's abstract namespace), which vanishes with it; nothing is left behind by a job that dies.
#pragma once

#include <vector>

#include "riffle/make_engine.h"

namespace riffle::engine {

// What the others need to map a rank's segment.
struct Member {
  int pid = 0;
  int fd = -1;
};

class Rendezvous {
 public:
  explicit Rendezvous(const ShmOptions& options);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // Tells all about ourselves and returns what all have told, by rank. CommError (absent) names the
  // first rank that is missing at the deadline.
  std::vector<Member> exchange(Member own);
  // Returns when all have called it.
  void meet();

 private:
  void listen();
  void connect();
  void gather(std::vector<Member>& members);
  [[noreturn]] void absent(Rank rank) const;
  void poll_or_throw(int fd, short events, Rank rank) const;
  void write_all(int fd, const void* data, std::size_t bytes, Rank rank) const;
  void read_all(int fd, void* data, std::size_t bytes, Rank rank) const;

  const ShmOptions& options_;
  Deadline deadline_;
  int listener_ = -1;
  std::vector<int> sockets_;  // by rank; only rank 0's table has more than entry 0
};

}  // namespace riffle::engine
