// Who takes part: one of our strategies, or another library.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "race/race.h"
#include "riffle/change.h"
#include "riffle/strategy.h"

namespace riffle::race {

struct Contender {
  std::string spec;
  // Ours; nothing: another library (a peer), or `auto`, which chooses while it runs.
  std::optional<NamedStrategy> strategy{};
  bool peer = false;
  // The strategy whose simulation predicts it, and whether its library waits for an answer before
  // each message, as Gloo does: then every latency counts twice. Nothing: it is not predicted.
  std::optional<NamedStrategy> predicted_as{};
  bool asks_before_sending = false;

  // The spec as a file's name.
  [[nodiscard]] std::string file_name() const;
};

// UsageError for a name that is neither a strategy nor a peer; a peer's options are the peer's own
// to judge.
Contender parse_contender(const std::string& spec, const StrategyTable& table);
// Of several, no two alike.
std::vector<Contender> parse_contenders(const std::vector<std::string>& specs,
                                        const StrategyTable& table);

// A step of the trace on the cluster.
std::optional<Prediction> predict(const Contender& contender, const Trace& trace,
                                  const Cluster& cluster, const std::vector<Change>& events);

// How often programs repeat and how late they merge; of one step for who has no strategy.
Traits traits_of(const Contender& contender, const Trace& trace, const Cluster& cluster);
// Who meets whom in the steps of one period, at most 8 of them, seen at the first bucket.
std::optional<std::vector<Groups>> groups_of(const Contender& contender, const Trace& trace,
                                             const Cluster& cluster);

}  // namespace riffle::race
