#include "strategies/parameter_server.h"

#include <algorithm>

#include "riffle/error.h"

namespace riffle {
namespace {

// What gradients of weights that others have moved on from cost, where all are as fast as each
// other; docs/converge.md says how it was measured.
constexpr double kWorth = 0.73;

}  // namespace

ParameterServer::ParameterServer(const Options& options, int ahead)
    : bucketing_(options), ahead_(ahead) {
  if (options.wire() != Wire::f32)
    usage_error("{}: what is served travels as it is; use wire=f32", options.where("wire"));
  if (options.algorithm() != Algorithm::automatic && options.algorithm() != Algorithm::direct)
    usage_error("{}: shards are sent straight to their owners; use algorithm=direct",
                options.where("algorithm"));
}

BucketPlan ParameterServer::buckets(const Trace& trace, const CostModel& cost,
                                    const World& world) const {
  return bucketing_.buckets(trace, cost, world, *this);
}

Program ParameterServer::program(Step /*step*/, const World& world,
                                 const BucketPlan& buckets) const {
  Program program;
  for (const Bucket& bucket : buckets)
    program.add({.bucket = bucket.id,
                 .payload = Payload::weight,
                 .group = world.ranks(),
                 .collective = Collective::serve,
                 .ahead = ahead_,
                 .start = Start::bucket_stepped,
                 .due = before_forward()});
  return program;
}

Traits ParameterServer::traits(const World& world) const {
  const bool timed = ahead_ != 0 && world.size() > 1;
  return {.staleness = timed ? std::max(ahead_, 0) : 0,
          .mixed = Payload::weight,
          .timed = timed,
          .effective_step = timed ? kWorth : 1};
}

std::string local_optimizer_section() {
  return "## What is pushed\n\n"
         "The published servers hold the optimizer and are sent gradients. Here the optimizer "
         "stays with the worker, as in all strategies that mix weights, so that any of "
         "`torch.optim` works: a worker updates its own copy and pushes what that moved, "
         "divided by the number of workers. For plain SGD this is the pushed gradient times "
         "learning rate / N, as the server would apply it; N pushes move the weights as far as "
         "a synchronous step. It differs where the optimizer remembers: momentum and Adam's "
         "moments are of a worker's own gradients, not of all that the server sees, and "
         "momentum is as many of the worker's own steps old, not of the server's. Moments stay "
         "local; BatchNorm's statistics are served too, each push takes them 1/N of the way. "
         "`wire` other than f32 is refused: what is served travels as it is.";
}

TrafficFormula served_traffic() {
  return {.bytes = "2(N-1)/N", .messages = "2(N-1)*B"};
}

}  // namespace riffle
