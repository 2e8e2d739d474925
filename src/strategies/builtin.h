// The list of built-in strategies: the code of each is in the file of its name. An explicit list
// instead of self-registering statics: it can be searched for, and linkers keep it.
#pragma once

#include "riffle/strategy.h"

#define RIFFLE_BUILTIN_STRATEGIES(X) \
  X(bsp)                             \
  X(single)                          \
  X(wfbp)                            \
  X(ddp)                             \
  X(hierarchical)                    \
  X(local_sgd)                       \
  X(gossip)                          \
  X(mg_wfbp)                         \
  X(sesgd)                           \
  X(ds_sync)                         \
  X(dasgd)                           \
  X(dear)                            \
  X(asc_wfbp)                        \
  X(diloco)                          \
  X(slowmo)                          \
  X(noloco)                          \
  X(asp)                             \
  X(ssp)

namespace riffle::strategies {

#define RIFFLE_DECLARE(name) StrategyInfo name();
RIFFLE_BUILTIN_STRATEGIES(RIFFLE_DECLARE)
#undef RIFFLE_DECLARE

}  // namespace riffle::strategies
