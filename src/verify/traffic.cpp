// What the cost model says each worker sends is what the messages of its pattern add up to.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "pattern/pattern.h"
#include "riffle/error.h"
#include "verify/checks.h"

namespace riffle::verifier {
namespace {

// Messages of one collective, counted one by one; bytes as a share of the vector, over all members.
struct Count {
  double messages = 0;
  double shares = 0;
};
Count count(const pattern::Pattern& pattern) {
  Count sum;
  std::vector<pattern::Message> messages;
  for (const pattern::RoundClass& each : pattern.round_classes())
    for (int member = 0; member < pattern.members(); ++member) {
      messages.clear();
      pattern.sends(member, each.round, messages);
      for (const pattern::Message& message : messages) {
        sum.messages += each.times;
        sum.shares += each.times * static_cast<double>(message.count) / pattern.blocks();
      }
    }
  return sum;
}

bool differ(double a, double b) {
  return std::abs(a - b) > 1e-9 * std::max(std::abs(a), std::abs(b));
}

}  // namespace

void check_traffic(const Schedule& schedule, const World& world, std::vector<Problem>& problems) {
  if (world.cluster.fit) return;  // a formula without messages
  const CostModel cost(world.cluster);
  using Shape = std::tuple<Algorithm, Collective, int, int, std::vector<std::vector<int>>>;
  std::map<Shape, Count> counted;
  for (Step step = 0; step < schedule.length(); ++step)
    for (const Exchange& exchange : schedule.at(step).exchanges) {
      const int n = exchange.group.size();
      if (n == 1) continue;
      const Bytes size = exchanged_bytes(schedule.buckets[exchange.bucket], exchange, DType::f32);
      const Algorithm algorithm = cost.algorithm(exchange, size);
      if (algorithm == Algorithm::tree && exchange.collective == Collective::all_reduce)
        continue;  // has a formula only
      std::vector<std::vector<int>> racks;
      if (algorithm == Algorithm::two_level)
        racks = pattern::rack_positions(exchange.group, world.cluster);
      const Shape shape{algorithm, exchange.collective, n, exchange.shift, racks};
      auto found = counted.find(shape);
      if (found == counted.end())
        found = counted
                    .emplace(shape, count(*pattern::make_pattern(algorithm, exchange.collective, n,
                                                                 racks, exchange.shift)))
                    .first;
      const Traffic model = cost.traffic(exchange, size);
      const double messages = found->second.messages / n;
      const double bytes = found->second.shares / n * static_cast<double>(size.count);
      if (differ(messages, model.messages) || differ(bytes, model.bytes))
        add(problems,
            problem(Problem::Check::traffic, instance(exchange, step),
                    fmt::format("{} sends {} messages and {} bytes per worker, the cost model "
                                "says {} and {}",
                                name_of(algorithm), messages, bytes, model.messages, model.bytes)));
    }
}

}  // namespace riffle::verifier
