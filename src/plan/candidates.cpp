// Which parameters are worth trying.
#include <map>

#include "riffle/plan.h"

namespace riffle {
namespace {

// Beside the defaults. Grids are small on purpose: neighbours of a good value are good too, and a
// person reads the table.
const std::map<std::string, std::vector<std::string>, std::less<>>& grids() {
  static const std::map<std::string, std::vector<std::string>, std::less<>> table{
      {"ddp", {"bucket=5MiB", "bucket=100MiB"}},
      {"mg-wfbp", {"merge=paper"}},
      {"local-sgd", {"tau=2", "tau=4", "tau=16"}},
      {"sesgd",
       {"group=2", "group=8", "schedule=random", "order=combine-then-adapt",
        "group=2,order=combine-then-adapt"}},
      {"ds-sync",
       {"pattern=grid,order=combine-then-adapt", "pattern=bottleneck", "pattern=bottleneck,delay=0",
        "pattern=bottleneck,delay=2", "pattern=bottleneck,delay=0,order=combine-then-adapt"}},
      {"dasgd",
       {"tau=2,delay=1", "tau=4,delay=2", "tau=4,delay=4", "tau=8,delay=2", "tau=8,delay=4",
        "tau=4,delay=1,merge=mix", "tau=4,delay=2,merge=mix"}},
      {"dear", {"bucket=optimal"}},
      {"diloco", {"tau=50"}},
  };
  return table;
}

// A strategy without a grid of its own: each word its options offer.
void add_words(const StrategyInfo& info, std::vector<std::string>& specs) {
  for (const OptionInfo& option : info.options) {
    if (option.key == "wire" || option.key == "algorithm" || option.key == "mix_state") continue;
    std::size_t bar = option.values.find('|');
    while (bar != std::string::npos) {
      const std::size_t end = option.values.find('|', bar + 1);
      specs.push_back(info.name + ":" + option.key + "=" +
                      option.values.substr(bar + 1, end - bar - 1));
      bar = end;
    }
  }
}

}  // namespace

std::vector<std::string> candidate_specs(const StrategyTable& table) {
  std::vector<std::string> specs;
  for (const StrategyInfo& info : table.all()) {
    specs.push_back(info.name);
    const auto grid = grids().find(info.name);
    if (grid == grids().end()) {
      add_words(info, specs);
      continue;
    }
    for (const std::string& options : grid->second) specs.push_back(info.name + ":" + options);
  }
  return specs;
}

}  // namespace riffle
