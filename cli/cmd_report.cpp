#include <fmt/format.h>

#include "base/files.h"
#include "commands.h"
#include "report/page.h"

namespace riffle::cli {
namespace {

struct Arguments {
  std::string race;
  std::string output = "report.html";
};

void run(const Arguments& arguments) {
  report::require_page();
  const Json race = parse_json(read_file(arguments.race), arguments.race);
  report::check_race(JsonReader(race, arguments.race));
  report::write_page(arguments.output, race);
  fmt::print("{}\n", arguments.output);
}

}  // namespace

void add_report(CLI::App& app) {
  auto* command =
      app.add_subcommand("report", "a race as one HTML file of charts that opens without network");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("race", arguments->race, "race.json, as riffle race wrote it")->required();
  command->add_option("--output", arguments->output, "the file to write")->capture_default_str();
  command->footer("Example: riffle report race.json --output report.html");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace riffle::cli
