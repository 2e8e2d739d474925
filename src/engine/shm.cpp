#include <unistd.h>

#include "engine/host_identity.h"
#include "engine/hybrid_engine.h"
#include "engine/rendezvous.h"
#include "riffle/error.h"
#include "riffle/make_engine.h"

namespace riffle {

namespace {

void check(const ShmOptions& options) {
  if (options.size < 1) usage_error("shm: size {} must be at least 1", options.size);
  if (options.rank < 0 || options.rank >= options.size)
    usage_error("shm: rank {} is outside a world of {}", options.rank, options.size);
  if (options.job.empty()) usage_error("shm: the job needs a name");
}

}  // namespace

std::unique_ptr<Engine> make_shm_engine(const ShmOptions& options) {
  check(options);
  const engine::Layout layout{.size = options.size};
  auto own = std::make_shared<engine::Segment>(engine::Segment::create(layout));
  engine::Rendezvous rendezvous(options);
  const auto members = rendezvous.exchange({.pid = getpid(), .fd = own->fd()});

  engine::HybridWorld world;
  world.name = "shm";
  world.self = options.rank;
  world.options = options;
  for (Rank r = 0; r < options.size; ++r) {
    const engine::Member& member = members[static_cast<std::size_t>(r)];
    world.segments.push_back(r == options.rank ? own
                                               : std::make_shared<engine::Segment>(
                                                     engine::Segment::open(member.pid, member.fd)));
    world.pids.push_back(member.pid);
    world.hosts.push_back(engine::host_name());
  }
  // From here on the hearts beat; when all have met, all have mapped all.
  auto engine = std::make_unique<engine::HybridEngine>(std::move(world));
  rendezvous.meet();
  return engine;
}

}  // namespace riffle
