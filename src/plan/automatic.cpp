#include "riffle/automatic.h"

#include <fmt/format.h>

#include <algorithm>

#include "riffle/error.h"

namespace riffle {
namespace {

constexpr std::string_view kName = "auto";
// Exact, and right about any network that was measured at the start.
constexpr std::string_view kBegin = "mg-wfbp";

}  // namespace

ChosenStrategy choose_strategy(std::string_view spec, StrategyTable table) {
  const std::size_t colon = spec.find(':');
  if (spec.substr(0, colon) != kName) return {table.make(spec)};
  const std::vector<OptionInfo> declared{
      {"inexact", "false|true", "strategies too that do not give the weights of synchronous SGD"},
      {"replan", "true|false", "plan again when the network or the pace changes"}};
  const Options options(std::string(kName), declared,
                        colon == std::string_view::npos ? "" : spec.substr(colon + 1));
  NamedStrategy begin = table.make(kBegin);
  return {std::move(begin), Automatic{.spec = std::string(spec),
                                      .inexact = options.boolean("inexact"),
                                      .replan = options.boolean("replan"),
                                      .table = std::move(table)}};
}

std::vector<std::string> allowed_specs(const Automatic& automatic) {
  std::vector<std::string> specs = candidate_specs(automatic.table);
  std::erase_if(specs, [&](const std::string& spec) {
    return !automatic.inexact && !automatic.table.info(spec.substr(0, spec.find(':'))).exact;
  });
  return specs;
}

const Candidate& best_allowed(const Plan& plan, const Automatic& automatic,
                              std::string_view source) {
  const auto found = std::ranges::find_if(plan.candidates, [&](const Candidate& candidate) {
    return automatic.inexact ||
           automatic.table.info(candidate.spec.substr(0, candidate.spec.find(':'))).exact;
  });
  if (found == plan.candidates.end())
    usage_error(
        "{}: has no strategy that gives the weights of synchronous SGD; auto:inexact=true allows "
        "others",
        source);
  return *found;
}

std::string explain_choice(const Plan& plan, const Candidate& chosen, const Automatic& automatic) {
  const Candidate& worst = plan.slowest();
  std::string text =
      fmt::format("{}: {} a step predicted", chosen.spec, print(chosen.simulation.iteration));
  if (&worst != &chosen)
    text += fmt::format(", {} with {}", print(worst.simulation.iteration), worst.spec);
  text += fmt::format("; {}", chosen.reason);
  if (!chosen.exact)
    text += fmt::format(
        "; this changes the mathematics: {} (workers' weights differ between exchanges)",
        automatic.table.info(chosen.simulation.strategy).summary);
  return text;
}

}  // namespace riffle
