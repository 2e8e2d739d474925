// An engine over several hosts that keeps something alive as long as itself.
#pragma once

#include <memory>

#include "riffle/make_engine.h"

namespace riffle::engine {

// As riffle::make_ucx_engine; `kept` is released after everything else of the engine: the store
// where the ranks met, which others may still be reading.
std::unique_ptr<Engine> make_ucx_engine(const UcxOptions& options,
                                        std::shared_ptr<const void> kept);

}  // namespace riffle::engine
