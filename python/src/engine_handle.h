// An engine as Python holds it: with the one Collectives object it may have, alive as long as any
// session or memory of it.
#pragma once

#include <memory>

#include "riffle/collective.h"
#include "riffle/make_engine.h"

namespace riffle::python {

class EngineHandle {
 public:
  explicit EngineHandle(std::unique_ptr<Engine> engine)
      : owned_(std::move(engine)), engine_(owned_.get()), collectives_(*engine_) {}
  EngineHandle(std::shared_ptr<LoopbackWorld> world, Rank rank)
      : world_(std::move(world)), engine_(&world_->engine(rank)), collectives_(*engine_) {}

  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] Collectives& collectives() { return collectives_; }

 private:
  std::unique_ptr<Engine> owned_;
  std::shared_ptr<LoopbackWorld> world_;
  Engine* engine_;
  Collectives collectives_;
};

}  // namespace riffle::python
