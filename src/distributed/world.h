// The ranks that one init_process_group has brought together, as one of them sees them: the engine
// that connects them and what all teams share.
#pragma once

#include <memory>

#include "distributed/attendant.h"
#include "riffle/collective.h"
#include "riffle/make_engine.h"

namespace riffle::distributed {

class World {
 public:
  explicit World(std::unique_ptr<Engine> engine)
      : engine_(std::move(engine)), collectives_(*engine_) {}

  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] Collectives& collectives() { return collectives_; }
  [[nodiscard]] Attendant& attendant() { return attendant_; }

  // Kept by whatever still holds what a caller gave to a call.
  using Held = std::shared_ptr<const int>;
  [[nodiscard]] Held hold() const { return held_; }
  // Waits until nothing is held any more; false: that takes longer. A process that ends calls it:
  // tensors that go after the interpreter has gone end it by std::terminate.
  [[nodiscard]] bool rest(Seconds most) const;

 private:
  Held held_ = std::make_shared<const int>(0);
  std::unique_ptr<Engine> engine_;
  Collectives collectives_;
  Attendant attendant_;  // ends first: what it attends to uses the engine
};

}  // namespace riffle::distributed
