#include <fmt/format.h>

#include "base/json.h"
#include "commands.h"
#include "common.h"

namespace riffle::cli {
namespace {

std::string spell_options(const StrategyInfo& info) {
  std::string text;
  for (const OptionInfo& option : info.options) {
    if (option.key == "wire" || option.key == "algorithm") continue;  // the same for all
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", option.key, option.values);
  }
  return text;
}

Json options_json(const StrategyInfo& info) {
  Json list = Json::array();
  for (const OptionInfo& option : info.options)
    list.push_back(Json{{"key", option.key},
                        {"values", option.values},
                        {"default", option.default_value()},
                        {"help", option.help}});
  return list;
}

void run(const Output& output) {
  const StrategyTable table = StrategyTable::builtin();
  if (output.json()) {
    Json json{{"strategies", Json::array()}};
    for (const StrategyInfo& info : table.all())
      json["strategies"].push_back(Json{{"name", info.name},
                                        {"summary", info.summary},
                                        {"paper", info.paper},
                                        {"exact", info.exact},
                                        {"options", options_json(info)}});
    output.write(json.dump(1) + "\n");
    return;
  }
  Table shown{{{"strategy", false},
               {"exact", false},
               {"what it does", false},
               {"options (default first)", false},
               {"paper", false}},
              {}};
  for (const StrategyInfo& info : table.all())
    shown.rows.push_back(
        {info.name, info.exact ? "yes" : "no", info.summary, spell_options(info), info.paper});
  output.write(shown);
}

}  // namespace

void add_strategies(CLI::App& app) {
  auto* command = app.add_subcommand("strategies", "list the strategies with their options");
  const auto output = std::make_shared<Output>();
  output->add_to(*command);
  command->footer("Example: riffle strategies --format json");
  command->callback([output] { run(*output); });
}

}  // namespace riffle::cli
