#include "report/page.h"

#include <algorithm>
#include <array>

#include "base/files.h"
#include "base/text.h"
#include "riffle/error.h"

namespace riffle::report {
namespace {

constexpr std::string_view kPlace = "@DATA@";

// In JSON these occur in strings only, where an escape says the same. Without them there is no
// "</script" and no "<!--" for a reader of HTML to find.
std::string embedded(const Json& data) {
  const std::string plain = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string text;
  text.reserve(plain.size());
  for (const char letter : plain) {
    if (letter == '<')
      text += "\\u003c";
    else if (letter == '>')
      text += "\\u003e";
    else if (letter == '&')
      text += "\\u0026";
    else
      text += letter;
  }
  return text;
}

bool is_null(const JsonReader& object, std::string_view key) {
  return !object.has(key) || object.at(key).is_null();
}

void check_numbers(const JsonReader& list) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (!list.at(i).is_null()) static_cast<void>(list.at(i).number());
}

void check_timeline(const JsonReader& timeline) {
  static_cast<void>(timeline.at("seconds").seconds());
  const JsonReader events = timeline.at("events");
  for (std::size_t i = 0; i < events.size(); ++i) {
    const JsonReader event = events.at(i);
    for (const char* key : {"lane", "name"}) static_cast<void>(event.at(key).text());
    for (const char* key : {"start", "seconds"}) static_cast<void>(event.at(key).number());
    if (!is_null(event, "rank")) static_cast<void>(event.at("rank").integer(0, 1 << 30));
  }
}

void check_groups(const JsonReader& steps) {
  for (std::size_t step = 0; step < steps.size(); ++step)
    for (std::size_t i = 0; i < steps.at(step).size(); ++i) check_numbers(steps.at(step).at(i));
}

void check_result(const JsonReader& result) {
  static_cast<void>(result.at("contender").text());
  constexpr std::array kNumbers{"seconds_per_step",
                                "exposed_communication_seconds",
                                "hidden_communication_seconds",
                                "compute_seconds",
                                "predicted_seconds_per_step",
                                "final_loss",
                                "accuracy",
                                "seconds_to_target",
                                "speedup",
                                "rank",
                                "steps"};
  for (const char* key : kNumbers)
    if (!is_null(result, key)) static_cast<void>(result.at(key).number());
  for (const char* key : {"failed", "how", "timeline_file"})
    if (!is_null(result, key)) static_cast<void>(result.at(key).text());
  if (!is_null(result, "curve"))
    for (const char* key : {"seconds", "loss"}) check_numbers(result.at("curve").at(key));
  if (!is_null(result, "evaluations")) static_cast<void>(result.at("evaluations").size());
  if (!is_null(result, "groups")) check_groups(result.at("groups"));
  if (!is_null(result, "timeline")) check_timeline(result.at("timeline"));
}

}  // namespace

std::filesystem::path page_template() {
  std::error_code unreadable;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  return program.parent_path().parent_path() / "share" / "riffle" / "report_page.html";
}

bool page_exists() {
  std::error_code unreadable;
  return std::filesystem::is_regular_file(page_template(), unreadable);
}

void require_page() {
  if (page_exists()) return;
  usage_error(
      "{} is missing: the page of charts was not built; in a clone, tools/build --target "
      "report_page builds it (with npm)",
      quote(page_template().string()));
}

std::string fill_page(std::string_view page, const Json& data) {
  const std::size_t place = page.find(kPlace);
  if (place == std::string_view::npos || page.find(kPlace, place + 1) != std::string_view::npos)
    usage_error("the page has no single place {} for data", quote(kPlace));
  std::string text(page.substr(0, place));
  text += embedded(data);
  text += page.substr(place + kPlace.size());
  return text;
}

void check_race(const JsonReader& race) {
  race.expect_document("race", 1);
  for (const char* key : {"command", "cluster", "task", "trace"})
    if (!is_null(race, key)) static_cast<void>(race.at(key).text());
  for (const char* key : {"target", "workers", "dilate", "shrink"})
    if (!is_null(race, key)) static_cast<void>(race.at(key).number());
  const JsonReader results = race.at("results");
  for (std::size_t i = 0; i < results.size(); ++i) check_result(results.at(i));
}

void write_page(const std::filesystem::path& file, const Json& data) {
  require_page();
  write_file(file, fill_page(read_file(page_template()), data));
}

}  // namespace riffle::report
