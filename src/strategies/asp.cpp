// ASP, an asynchronous parameter server without servers: every worker owns a shard of the weights
// and serves it while it trains. After its update a worker pushes what its weights have moved,
// divided by N, shard by shard to the owners, and pulls what they hold; nobody waits for anybody's
// step. What is pushed is the local optimizer's update: of plain SGD the gradient times the rate,
// as a server would apply it; of one with memory (momentum, Adam) it is the worker's own memory
// where a server would have that of all pushes.
// Recht et al., "Hogwild!", NIPS 2011, arXiv:1106.5730; Li et al., "Scaling Distributed Machine
// Learning with the Parameter Server", OSDI 2014. The baseline of DS-Sync (arXiv:2007.03298).
// Cost per step: 2(N-1) messages, 2 alpha + 2(N-1)/N*M*beta, under the rest of backward and the
// next forward; a slow worker slows only itself.
#include "strategies/builtin.h"
#include "strategies/parameter_server.h"

namespace riffle::strategies {

StrategyInfo asp() {
  return {
      .name = "asp",
      .summary = "asynchronous: push updates to sharded servers, pull weights, no barrier",
      .paper = "OSDI 2014 (parameter server), arXiv:1106.5730",
      .options = {bucket_option()},
      .page = {.idea = "A parameter server without servers: every worker owns a shard of the "
                       "weights and serves it while it trains. A worker that has updated a bucket "
                       "pushes to each owner what its own copy of that shard has moved, divided by "
                       "N, and pulls what the owner holds then. Nobody waits for another's step, "
                       "only for answers, so a slow worker slows nobody but itself.\n\n"
                       "Gradients are of weights that others have moved on from: by about N-1 "
                       "pushes where all are as fast as each other, without bound where they are "
                       "not. What a run gives depends on who was faster: two runs differ.",
               .when = "To compare with: it is the baseline of the papers. One slow host costs "
                       "little time and more accuracy the slower it is; "
                       "[ssp](ssp.md) bounds that, [ds-sync](ds-sync.md) avoids it. It sends "
                       "2(N-1) messages a step. `finish()` waits for the slowest: all make as "
                       "many steps. Not over process groups, whose operations all members make "
                       "in one order.",
               .more = local_optimizer_section()},
      .candidates = {"bucket=single"},
      .traffic = {served_traffic()},
      .make = [](const Options& options) {
        return std::make_unique<ParameterServer>(options, -1);
      }};
}

}  // namespace riffle::strategies
