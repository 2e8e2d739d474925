#include "strategies/traffic.h"

#include <fmt/format.h>

#include <charconv>

#include "strategies/example.h"
#include "strategies/formula.h"
#include "strategies/grouping.h"

namespace riffle {
namespace {

constexpr int kRacks = 4;
constexpr int kWorkersOfRack = 4;

// The letters of formulas: the world's, and every option that is a number, by its key.
FormulaNames names_for(const NamedStrategy& strategy, std::size_t buckets) {
  constexpr int kWorkers = kRacks * kWorkersOfRack;
  FormulaNames names{{"N", kWorkers},
                     {"R", kRacks},
                     {"K", kWorkersOfRack},
                     {"g", default_group(kWorkers)},
                     {"B", static_cast<double>(buckets)}};
  for (const auto& [key, text] : strategy.options) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) names.emplace(key, value);
  }
  return names;
}

}  // namespace

Traffic sent_per_step(const NamedStrategy& strategy, const World& world, const Trace& trace) {
  const CostModel cost(world.cluster);
  const BucketPlan buckets = strategy->buckets(trace, cost, world);
  const Traits traits = strategy->traits_with(world, buckets);
  const int steps = traits.period > 0 ? traits.period : 32 * traits.round;
  Traffic sum;
  for (Step step = 0; step < steps; ++step)
    for (const Exchange& exchange : strategy->program(step, world, buckets).exchanges) {
      const Bytes size = wire_bytes(payload_bytes(buckets[exchange.bucket], exchange.payload),
                                    trace.dtype, exchange.wire);
      const Traffic each = cost.traffic(exchange, size);
      sum.bytes += each.bytes * exchange.group.size();
      sum.messages += each.messages * exchange.group.size();
    }
  const double share = 1.0 / steps / world.size();
  return {sum.bytes * share, sum.messages * share};
}

std::vector<TrafficRow> traffic_rows(const StrategyTable& table) {
  const World world(parse_cluster(
      fmt::format("racks:{}x{},inner=20us/10Gbps,outer=200us/1Gbps", kRacks, kWorkersOfRack)));
  const Trace trace = example_trace();
  std::vector<TrafficRow> rows;
  const auto add = [&](const std::string& spec, const TrafficFormula& formula) {
    const NamedStrategy strategy = table.make(spec);
    Traffic counted = sent_per_step(strategy, world, trace);
    counted.bytes /= static_cast<double>(trace.bytes().count);
    TrafficRow row{.strategy = spec, .formula = formula, .expected = {}, .counted = counted};
    if (!formula.bytes.empty()) {
      const auto buckets = strategy->buckets(trace, CostModel(world.cluster), world);
      const FormulaNames names = names_for(strategy, buckets.size());
      row.expected = {evaluate(formula.bytes, names), evaluate(formula.messages, names)};
    }
    rows.push_back(std::move(row));
  };
  for (const StrategyInfo& info : table.all()) {
    if (info.traffic.empty()) add(info.name, {});
    for (const TrafficFormula& formula : info.traffic)
      add(formula.options.empty() ? info.name : info.name + ":" + formula.options, formula);
  }
  return rows;
}

std::vector<std::string> traffic_notes(const StrategyTable& table) {
  std::vector<std::string> notes{
      fmt::format("N = {} workers in R = {} racks of K = {}; groups of g = {}",
                  kRacks * kWorkersOfRack, kRacks, kWorkersOfRack,
                  default_group(kRacks * kWorkersOfRack)),
      "B: buckets of the plan (one to four, the model has four layers)",
      "other names: options, as the spelling or the default has them"};
  for (const StrategyInfo& info : table.all())
    for (const TrafficFormula& formula : info.traffic)
      if (!formula.note.empty()) notes.push_back(info.name + ": " + formula.note);
  return notes;
}

}  // namespace riffle
