// A strategy is a schedule, and a schedule is data: a pure function from (step, world, buckets) to
// a program. Adding one is a file in src/strategies, a line in builtin.h and a test.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "riffle/bucket.h"
#include "riffle/cost.h"
#include "riffle/program.h"

namespace riffle {

struct Traits {
  bool exact = false;  // gives the weights of synchronous SGD
  int period = 1;      // the programs repeat after so many steps; 0: never (random groups)
  int staleness = 0;   // steps that a merged value may be late
  Payload mixed = Payload::gradient;
  // What workers hold depends on who is faster: runs differ, and `staleness` is by how many steps
  // one may be ahead of another (0: there is no bound).
  bool timed = false;
  // After so many steps they repeat but for the names of workers of a rack that are alike in link
  // and speed, so that steps take as long as before; 0: only after the period.
  int rotation = 0;
  // Where groups are random (period 0): steps that make a round, in which everything that there is
  // to exchange is exchanged once.
  int round = 1;
  // A step's worth against one of synchronous SGD, where the rule gives up part of what was
  // learned.
  double effective_step = 1;
};

// Pure policy: no communication, no clock, no thread. The same arguments give the same answer on
// every rank, forever.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // How layers travel. `cost` is of the world's cluster.
  [[nodiscard]] virtual BucketPlan buckets(const Trace& trace, const CostModel& cost,
                                           const World& world) const = 0;
  // The exchanges of `step` for the whole world, in issue order. There is no rank argument on
  // purpose: every rank computes the same program, so ranks cannot disagree.
  [[nodiscard]] virtual Program program(Step step, const World& world,
                                        const BucketPlan& buckets) const = 0;
  [[nodiscard]] virtual Traits traits(const World& world) const = 0;
  // The same where the buckets decide too, as ds-sync's delay=auto does by their sizes and times.
  // Readers that hold buckets ask this one.
  [[nodiscard]] virtual Traits traits_with(const World& world,
                                           const BucketPlan& /*buckets*/) const {
    return traits(world);
  }
};

struct OptionInfo {
  std::string key;
  std::string values;  // the default first, alternatives after it: "optimal|layer|SIZE"
  std::string help;

  [[nodiscard]] std::string default_value() const { return values.substr(0, values.find('|')); }
  // The values as they may be given, the default first; one in capitals only stands for others.
  [[nodiscard]] std::vector<std::string> words() const;
};

// The options of one strategy: every declared key has a value, unknown keys were refused.
class Options {
 public:
  // "key=value,..." against what is declared. Errors name the strategy.
  Options(const std::string& strategy, const std::vector<OptionInfo>& declared,
          std::string_view text);

  [[nodiscard]] const std::string& text(std::string_view key) const;
  [[nodiscard]] bool given(std::string_view key) const;  // in the text, not by default
  [[nodiscard]] std::int64_t integer(std::string_view key, std::int64_t low) const;
  [[nodiscard]] double number(std::string_view key, double low, double high) const;
  [[nodiscard]] bool boolean(std::string_view key) const;
  [[nodiscard]] Bytes bytes(std::string_view key) const;
  // One of the words that `values` lists; anything else is answered with them.
  [[nodiscard]] const std::string& choice(std::string_view key) const;

  // Every strategy has these two.
  [[nodiscard]] Wire wire() const;
  [[nodiscard]] Algorithm algorithm() const;

  // All keys with their values, in the order declared.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> all() const;
  // "strategy key": the prefix of errors about an option.
  [[nodiscard]] std::string where(std::string_view key) const;

 private:
  struct Value {
    OptionInfo info;
    std::string value;
    bool given = false;
  };
  [[nodiscard]] const Value& find(std::string_view key) const;

  std::string strategy_;
  std::vector<Value> values_;
};

// What the page of a strategy in docs/strategies and `riffle explain` say of it, as Markdown. What
// can be read off its programs (groups, options, traffic) is added by the program.
struct StrategyPage {
  std::string idea{};                // what happens, in a paragraph or two; empty: the summary
  std::string when{};                // to use it
  std::string more{};                // sections of its own, with their headings
  std::vector<std::string> drawn{};  // options whose groups are shown beside those of the defaults
};

// What a worker sends per step by the paper, on a whole number of racks. Formulas are arithmetic as
// papers write it, 2(N-1)/N + log2 R, of the letters that docs/traffic.md explains and of options
// by their keys. A test compares them with what the programs add up to.
struct TrafficFormula {
  std::string options{};  // that it holds for: "algorithm=ring"
  std::string bytes;      // as a multiple of the model's size
  std::string messages;
  std::string note{};  // for who reads the table
};

// All that is known of a strategy by its name. A new one needs name, summary and make.
struct StrategyInfo {
  std::string name;
  std::string summary;
  std::string paper{};
  bool exact = false;
  std::vector<OptionInfo> options{};  // its own; wire and algorithm come with every strategy
  StrategyPage page{};
  // What the planner tries beside the defaults, "tau=2,delay=1". Empty: every word of its options.
  std::vector<std::string> candidates{};
  std::vector<TrafficFormula> traffic{};
  std::function<std::unique_ptr<Strategy>(const Options&)> make;

  // Its name, alone and with each of its candidates: what the planner tries and tests run.
  [[nodiscard]] std::vector<std::string> specs() const;
};

// A strategy made from "name:key=value,...".
struct NamedStrategy {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;  // all of them, defaults included
  std::string spec;  // name and the options that were given: what a person would type again
  std::shared_ptr<const Strategy> strategy;

  const Strategy* operator->() const { return strategy.get(); }
};

// The strategies known by name. A value: copy it, add your own, pass it on.
class StrategyTable {
 public:
  static StrategyTable builtin();

  // Registers one more; UsageError when the name is taken.
  void add(StrategyInfo info);
  [[nodiscard]] const std::vector<StrategyInfo>& all() const { return infos_; }
  // A wrong name is answered with the known ones.
  [[nodiscard]] const StrategyInfo& info(std::string_view name) const;
  [[nodiscard]] NamedStrategy make(std::string_view spec) const;

 private:
  std::vector<StrategyInfo> infos_;
};

}  // namespace riffle
