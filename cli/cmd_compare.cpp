#include <fmt/format.h>

#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "race/compare.h"
#include "riffle/units.h"

namespace riffle::cli {
namespace {

struct Arguments {
  Output output;
  std::string first;
  std::string second;
};

std::string place(const race::Compared::Side& side) {
  if (!side.seconds) return side.note.empty() ? "-" : side.note;
  return fmt::format("{} ({}.)", print(Seconds(*side.seconds)), side.rank);
}

report::Table table_of(const race::Comparison& found, const Arguments& arguments) {
  report::Table table{
      {{"contender", false}, {arguments.first}, {arguments.second}, {"ratio"}, {"rank"}}, {}};
  for (const race::Compared& each : found.contenders) {
    const auto ratio = each.ratio();
    const int moved = each.moved();
    table.rows.push_back({each.contender, place(each.first), place(each.second),
                          ratio ? fmt::format("{:.3f}", *ratio) : "-",
                          moved == 0 ? "" : fmt::format("{:+d}", moved)});
  }
  return table;
}

void run(const Arguments& arguments) {
  const auto read = [](const std::string& file) { return race::read_times(read_file(file), file); };
  const race::Comparison found = race::compare(read(arguments.first), read(arguments.second));
  const Output& output = arguments.output;
  if (output.json()) return output.write(race::to_json(found));
  output.write(table_of(found, arguments));
  if (!output.csv()) output.write(fmt::format("\n{}\n", found.what));
}

}  // namespace

void add_compare(CLI::App& app) {
  auto* command =
      app.add_subcommand("compare", "two races, or a simulation and a race, side by side");
  const auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("first", arguments->first, "race.json, or what simulate --format json printed")
      ->required();
  command->add_option("second", arguments->second, "the same")->required();
  arguments->output.add_to(*command);
  command->footer(
      "Per contender both times, the second over the first, and how its rank changed. Two races\n"
      "to a target are compared by the time to it, else by the time of a step.\n\n"
      "Example: riffle simulate --trace resnet50 --strategy wfbp --strategy dasgd --format json "
      "--output predicted.json\n"
      "         riffle compare predicted.json riffle-race/race.json");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace riffle::cli
