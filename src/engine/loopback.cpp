#include "engine/hybrid_engine.h"
#include "riffle/error.h"
#include "riffle/make_engine.h"

namespace riffle {

struct LoopbackWorld::State {
  std::vector<std::unique_ptr<engine::HybridEngine>> engines;
  std::vector<std::atomic<bool>> interrupted;
};

LoopbackWorld::LoopbackWorld(int size, const EngineOptions& options)
    : LoopbackWorld(std::vector<std::string>(static_cast<std::size_t>(size), "localhost"),
                    options) {}

LoopbackWorld::LoopbackWorld(const std::vector<std::string>& hosts, const EngineOptions& options)
    : state_(std::make_unique<State>()) {
  const std::size_t size = hosts.size();
  if (size == 0) usage_error("loopback: a world needs at least one rank");
  const engine::Layout layout{.size = static_cast<int>(size)};
  std::vector<std::shared_ptr<engine::Segment>> segments;
  segments.reserve(size);
  for (std::size_t r = 0; r < size; ++r)
    segments.push_back(std::make_shared<engine::Segment>(engine::Segment::local(layout)));
  state_->interrupted = std::vector<std::atomic<bool>>(size);
  for (std::size_t r = 0; r < size; ++r)
    state_->engines.push_back(
        std::make_unique<engine::HybridEngine>(engine::HybridWorld{.name = "loopback",
                                                                   .self = static_cast<Rank>(r),
                                                                   .segments = segments,
                                                                   .hosts = hosts,
                                                                   .pids = std::vector<int>(size),
                                                                   .options = options}));
}

LoopbackWorld::~LoopbackWorld() = default;

int LoopbackWorld::size() const {
  return static_cast<int>(state_->engines.size());
}

Engine& LoopbackWorld::engine(Rank rank) {
  return *state_->engines.at(static_cast<std::size_t>(rank));
}

void LoopbackWorld::kill(Rank rank) {
  freeze(rank);
  state_->engines.at(static_cast<std::size_t>(rank))->leave();
}

void LoopbackWorld::freeze(Rank rank) {
  state_->interrupted.at(static_cast<std::size_t>(rank)).store(true);
  state_->engines.at(static_cast<std::size_t>(rank))->stop_heart();
}

bool LoopbackWorld::interrupted(Rank rank) const {
  return state_->interrupted.at(static_cast<std::size_t>(rank)).load();
}

}  // namespace riffle
