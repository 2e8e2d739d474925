// What the network gives to who asks it plainly: a pattern's messages over one TCP connection a
// pair, round after round, nothing added up. The measure that our collectives are held against.
#pragma once

#include <vector>

#include "base/descriptor.h"
#include "collective/plan.h"
#include "riffle/collective.h"

namespace riffle::bench {

class RawSockets {
 public:
  // Connects every pair; all ranks must come. Addresses travel over `collectives`.
  RawSockets(Engine& engine, Collectives& collectives);

  // One round of the pattern after the other: sends the call's bytes, reads as many.
  void run(const collective::Call& call, const collective::Plan& plan);

 private:
  struct Direction {
    std::vector<std::span<std::byte>> parts;
    std::size_t part = 0;
    std::size_t done = 0;
    void clear() { parts.clear(), part = 0, done = 0; }
    [[nodiscard]] bool open() const { return part < parts.size(); }
    void moved(std::size_t bytes);
  };
  void fill(const collective::Call& call, const collective::Plan& plan, int round, int me);
  bool move();

  Engine& engine_;
  std::vector<Descriptor> sockets_;  // by rank
  std::vector<Direction> out_;       // by rank
  std::vector<Direction> in_;        // by rank
  std::vector<std::byte> landing_;   // what comes in goes here: nothing is kept
};

}  // namespace riffle::bench
