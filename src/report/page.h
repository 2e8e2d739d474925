// The page of charts: web/ bundled into one HTML file, with a place for data. It lies beside the
// program, so that the program builds without npm; see docs/report.md.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/json.h"

namespace riffle::report {

// ../share/riffle/report_page.html, seen from the folder of the running program. It may not be
// there.
std::filesystem::path page_template();
bool page_exists();
// UsageError, with what to do, where it was not built.
void require_page();

// The page with the data in its place, such that no text of the data can end the element it is in.
// UsageError where the page has no single place for it.
std::string fill_page(std::string_view page, const Json& data);

// UsageError unless the document has what the page reads, as its type: {"riffle": "race",
// "version": 1, "results": [{"contender": ...}]}. Fields that are absent or null are shown as
// unknown.
void check_race(const JsonReader& race);

// Writes the page, whole or not at all; requires it.
void write_page(const std::filesystem::path& file, const Json& data);

}  // namespace riffle::report
