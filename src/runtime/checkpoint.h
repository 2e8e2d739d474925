// A session as bytes: a JSON header, then the memory that it names, in order.
#pragma once

#include "runtime/agreement.h"

namespace riffle::runtime {

// Nothing where there is nothing to resume. UsageError for bytes of another strategy, model, rank
// or number of workers, or that are no session.
std::optional<Resumed> read_resumed(std::span<const std::byte> bytes, const NamedStrategy& strategy,
                                    const ModelSpec& model, const Engine& engine);

}  // namespace riffle::runtime
