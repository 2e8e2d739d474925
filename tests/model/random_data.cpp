#include "random_data.h"

#include <array>
#include <cmath>

namespace riffle {
namespace {

int below(Random& random, int bound) {
  return static_cast<int>(random.below(static_cast<std::uint64_t>(bound)));
}
bool chance(Random& random, int one_in) {
  return below(random, one_in) == 0;
}
// From nanoseconds to thousands of seconds.
Seconds random_time(Random& random) {
  return Seconds(std::pow(10, random.uniform(-9, 4)));
}
Link random_link(Random& random) {
  return {random_time(random), {std::pow(10, random.uniform(0, 12))}};
}
template <typename Enum>
Enum random_enum(Random& random, int count) {
  return static_cast<Enum>(below(random, count));
}

Group random_group(Random& random, int workers, int members) {
  std::vector<int> order = random.permutation(workers);
  order.resize(static_cast<std::size_t>(members));
  return Group(std::move(order));
}

Merge random_merge(Random& random) {
  switch (random_enum<Merge::Kind>(random, 4)) {
    case Merge::Kind::mix:
      return mix(random.uniform());
    case Merge::Kind::correct:
      return correct(random.uniform(0, 8));
    case Merge::Kind::outer:
      return outer(random.uniform(), random.uniform(), chance(random, 2),
                   chance(random, 2) ? random.uniform() : 0);
    case Merge::Kind::replace:
      break;
  }
  return replace();
}

}  // namespace

std::string random_name(Random& random) {
  constexpr std::array<std::string_view, 10> parts{"conv", "1",  ".",        " ", "\"",
                                                   "\\",   "\n", "\xc3\xa8", "/", "\t"};
  std::string name;
  for (int i = below(random, 6); i > 0; --i) name += parts[random.below(parts.size())];
  return name;
}

Trace random_trace(Random& random) {
  Trace trace;
  trace.model = random_name(random);
  trace.dtype = random_enum<DType>(random, 4);
  trace.batch = 1 + below(random, 1000);
  for (int i = 1 + below(random, 30); i > 0; --i)
    trace.layers.push_back({random_name(random), 1 + below(random, 1 << 30), random_time(random),
                            chance(random, 4) ? Seconds{} : random_time(random)});
  if (chance(random, 2)) trace.optimizer_step = random_time(random);
  if (chance(random, 2)) trace.source = random_name(random);
  return trace;
}

Cluster random_cluster(Random& random) {
  Cluster cluster;
  const int workers = 1 + below(random, 20);
  if (chance(random, 4)) {
    cluster.fit = LinearCost{random_time(random), {random.uniform() * 1e-9}};
    cluster.workers.resize(static_cast<std::size_t>(workers));
  } else {
    cluster.domains.push_back({random_name(random), -1, {}});
    for (int i = below(random, 8); i > 0; --i)
      cluster.domains.push_back({random_name(random),
                                 below(random, static_cast<int>(cluster.domains.size())),
                                 random_link(random)});
    for (int i = 0; i < workers; ++i)
      cluster.workers.push_back(
          {below(random, static_cast<int>(cluster.domains.size())), random_link(random), 1});
    for (int i = below(random, 3); i > 0; --i)
      cluster.pairs.push_back(
          {below(random, workers), below(random, workers), random_link(random)});
  }
  if (chance(random, 2)) cluster.workers[0].slow = random.uniform(0.1, 10);
  cluster.algorithm = random_enum<Algorithm>(random, 7);
  cluster.gamma = {chance(random, 2) ? 0 : random.uniform() * 1e-9};
  if (chance(random, 2)) cluster.piece = Bytes{1 + below(random, 1 << 24)};
  cluster.jitter = chance(random, 2) ? 0 : random.uniform();
  if (chance(random, 2)) cluster.straggle = {random.uniform(), random.uniform(1, 10)};
  if (chance(random, 2)) cluster.optimizer_step = random_time(random);
  return cluster;
}

World random_world(Random& random) {
  Cluster cluster = random_cluster(random);
  const int workers = cluster.size();
  const int live = 1 + below(random, workers);
  return {std::move(cluster), {random.below(1ULL << 53), random_group(random, workers, live)}};
}

Program random_program(Random& random) {
  Program program;
  for (int i = below(random, 20); i > 0; --i) {
    Exchange exchange;
    exchange.bucket = below(random, 100);
    exchange.payload = random_enum<Payload>(random, 4);
    exchange.group = random_group(random, 16, 1 + below(random, 16));
    if (chance(random, 2))
      for (int member = 0; member < exchange.group.size(); ++member)
        exchange.weights.push_back(random.uniform(0, 4));
    if (chance(random, 4))
      for (int member = 0; member < exchange.group.size(); ++member)
        exchange.scales.push_back(random.uniform(-4, 4));
    exchange.collective = random_enum<Collective>(random, 5);
    if (exchange.collective == Collective::shift) exchange.shift = below(random, 16);
    if (exchange.collective == Collective::serve) exchange.ahead = below(random, 9) - 1;
    exchange.algorithm = random_enum<Algorithm>(random, 7);
    exchange.lane = below(random, 3);
    exchange.start = random_enum<Start>(random, 4);
    exchange.due = {below(random, 5), random_enum<DuePoint>(random, 3)};
    exchange.merge = random_merge(random);
    exchange.wire = random_enum<Wire>(random, 4);
    exchange.feedback = chance(random, 2);
    program.add(std::move(exchange));
  }
  return program;
}

Timeline random_timeline(Random& random) {
  Timeline timeline;
  for (int i = below(random, 30); i > 0; --i) {
    Event event;
    event.kind = random_enum<EventKind>(random, 5);
    event.name = random_name(random);
    event.rank = below(random, 1000);
    event.step = below(random, 1 << 30);
    event.start = random_time(random);
    event.end = event.start + random_time(random);
    if (event.kind == EventKind::exchange) {
      event.lane = below(random, 4);
      event.bytes = Bytes{below(random, 1 << 30)};
    }
    timeline.events.push_back(std::move(event));
  }
  return timeline;
}

}  // namespace riffle
