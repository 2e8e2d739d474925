// A session as bytes: a JSON header, then the memory that it names, in order.
#pragma once

#include "runtime/planning.h"
#include "runtime/values.h"

namespace riffle::runtime {

// What a session is, apart from its memory.
struct Identity {
  std::string_view strategy;  // as it was asked for
  const ModelSpec& model;
  Rank rank = 0;
  int workers = 0;
};

// Nothing where there is nothing to resume. UsageError for bytes of another strategy, model, rank
// or number of workers, or that are no session.
std::optional<Resumed> read_resumed(std::span<const std::byte> bytes, const Identity& identity);

// `flights` have arrived and are still to be merged.
std::vector<std::byte> write_checkpoint(const Identity& identity, const Agreement& agreed,
                                        const Running& running, Step step, const Values& values,
                                        const std::vector<FlightPtr>& flights);

// Restores what outlives a step, and gives the flights that are still to be merged.
std::vector<FlightPtr> restore(std::span<const std::byte> bytes, Rank rank, Step step,
                               Values& values);

}  // namespace riffle::runtime
