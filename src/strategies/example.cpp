#include "strategies/example.h"

#include <fmt/format.h>

#include "riffle/error.h"
#include "strategies/grouping.h"

namespace riffle {

Cluster example_racks(int workers) {
  if (workers < 1 || workers > 1'000'000)
    usage_error("workers: {} must be from 1 to 1000000", workers);
  Cluster cluster;
  cluster.domains = {{"root", -1, {}}};
  const Link inner{microseconds(20), {10e9 / 8}};
  const Link outer{microseconds(200), {1e9 / 8}};
  const Partition racks =
      cut(Membership::all(workers).ranks.ranks(), group_count(workers, default_group(workers)));
  for (const Group& rack : racks) {
    const auto domain = static_cast<int>(cluster.domains.size());
    cluster.domains.push_back({fmt::format("rack{}", domain - 1), 0, outer});
    for (int i = 0; i < rack.size(); ++i) cluster.workers.push_back({domain, inner, 1});
  }
  return cluster;
}

Trace example_trace() {
  Trace trace{.model = "example", .layers = {}, .source = "made for examples"};
  // Four layers as in a small convolutional net: sizes grow, times fall.
  for (int i = 0; i < 4; ++i) {
    const std::int64_t side = 500LL << i;
    trace.layers.push_back({fmt::format("layer{}", i + 1),
                            side * side,
                            milliseconds(8 - i),
                            milliseconds(16 - 2 * i),
                            {side, side}});
  }
  return trace;
}

}  // namespace riffle
