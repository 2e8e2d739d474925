#include <fmt/format.h>

#include "base/json.h"
#include "commands.h"
#include "common.h"
#include "strategies/traffic.h"

namespace riffle::cli {
namespace {

std::string spell_options(const StrategyInfo& info) {
  std::string text;
  for (const OptionInfo& option : info.options) {
    if (option.key == "wire" || option.key == "feedback" || option.key == "algorithm")
      continue;  // the same for all
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

// For the pages of docs/strategies.
Json page_json(const StrategyPage& page) {
  return {{"idea", page.idea}, {"when", page.when}, {"more", page.more}, {"drawn", page.drawn}};
}

report::Table traffic_table(const StrategyTable& known) {
  report::Table table{{{"strategy", false},
                       {"bytes / model, formula", false},
                       {"value"},
                       {"counted"},
                       {"messages, formula", false},
                       {"value"},
                       {"counted"}},
                      {}};
  const auto number = [](double value) { return fmt::format("{:.4f}", value); };
  for (const TrafficRow& row : traffic_rows(known)) {
    const auto expected = [&](double Traffic::* figure) {
      return row.expected ? number((*row.expected).*figure) : "";
    };
    table.rows.push_back({row.strategy, row.formula.bytes, expected(&Traffic::bytes),
                          number(row.counted.bytes), row.formula.messages,
                          expected(&Traffic::messages), number(row.counted.messages)});
  }
  return table;
}

std::string traffic_page(const StrategyTable& known) {
  std::string page =
      "# What each strategy sends\n\nPer worker and step, as a mean over workers and steps: the "
      "published formulas beside what the programs of each strategy add up to, message by message. "
      "Made by\n\n    riffle strategies --traffic --format markdown --output docs/traffic.md\n\n";
  for (const std::string& line : traffic_notes(known)) page += "- " + line + "\n";
  return page + "\n" + report::print_markdown(traffic_table(known));
}

void run_traffic(const Output& output) {
  const StrategyTable known = StrategyTable::builtin();
  if (output.format == "markdown") return output.write(traffic_page(known));
  if (!output.json()) return output.write(traffic_table(known));
  Json json{{"traffic", Json::array()}};
  for (const TrafficRow& row : traffic_rows(known)) {
    const auto expected = [&](double Traffic::* figure) {
      return row.expected ? Json((*row.expected).*figure) : Json();
    };
    json["traffic"].push_back(Json{{"strategy", row.strategy},
                                   {"bytes_formula", row.formula.bytes},
                                   {"bytes_expected", expected(&Traffic::bytes)},
                                   {"bytes_counted", row.counted.bytes},
                                   {"messages_formula", row.formula.messages},
                                   {"messages_expected", expected(&Traffic::messages)},
                                   {"messages_counted", row.counted.messages}});
  }
  output.write(json.dump(1) + "\n");
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
                                        {"options", options_json(info)},
                                        {"page", page_json(info.page)}});
    output.write(json.dump(1) + "\n");
    return;
  }
  report::Table shown{{{"strategy", false},
                       {"exact", false},
                       {"what it does", false},
                       {"options (default first)", false},
                       {"paper", false}},
                      {}};
  for (const StrategyInfo& info : table.all())
    shown.rows.push_back(
        {info.name, info.exact ? "yes" : "no", info.summary, spell_options(info), info.paper});
  if (output.format == "markdown") return output.write(report::print_markdown(shown));
  output.write(shown);
}

}  // namespace

void add_strategies(CLI::App& app) {
  auto* command = app.add_subcommand("strategies", "list the strategies with their options");
  const auto output = std::make_shared<Output>();
  const auto traffic = std::make_shared<bool>(false);
  output->add_to(*command, {"table", "json", "csv", "markdown"});
  command->add_flag("--traffic", *traffic,
                    "what each sends per step, beside the published formulas");
  command->footer("Example: riffle strategies --format json");
  command->callback([output, traffic] { *traffic ? run_traffic(*output) : run(*output); });
}

}  // namespace riffle::cli
