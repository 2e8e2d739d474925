// What strategies send per step: counted from their programs, and beside it what their papers say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "riffle/strategy.h"

namespace riffle {

// What a worker sends per step by the cost model, as a mean over workers and a period (32 steps
// where there is none).
Traffic sent_per_step(const NamedStrategy& strategy, const World& world, const Trace& trace);

// Bytes are multiples of the model's size.
struct TrafficRow {
  std::string strategy;
  TrafficFormula formula{};         // empty where the strategy names none
  std::optional<Traffic> expected;  // its value
  Traffic counted;
};

// A row for each formula of each strategy, on 4 racks of 4 and a model of 4 layers.
std::vector<TrafficRow> traffic_rows(const StrategyTable& table);
// What a reader of the rows must know, a line each: letters and notes.
std::vector<std::string> traffic_notes(const StrategyTable& table);

}  // namespace riffle
