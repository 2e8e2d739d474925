#include "base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "riffle/error.h"

namespace riffle {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  const auto blank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

std::string one_line(std::string_view text) {
  std::string shown(text);
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return shown;
}

std::string quote(std::string_view text) {
  constexpr std::size_t limit = 60;
  const std::string shown = one_line(text.substr(0, limit));
  return text.size() > limit ? fmt::format("'{}...'", shown) : fmt::format("'{}'", shown);
}

double parse_number(std::string_view text, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() ||
      !std::isfinite(value))
    usage_error("{}: {} is not a number", what, quote(text));
  return value;
}

std::int64_t parse_integer(std::string_view text, std::string_view what) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    usage_error("{}: {} is not a whole number", what, quote(text));
  return value;
}

bool parse_bool(std::string_view text, std::string_view what) {
  if (text == "true") return true;
  if (text == "false") return false;
  usage_error("{}: {} is neither true nor false", what, quote(text));
}

namespace {

// Levenshtein distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

}  // namespace

std::string unknown_name(std::string_view kind, std::string_view name,
                         std::span<const std::string> known) {
  const std::string_view shown = name.substr(0, 60);  // the distance is quadratic in the text
  const auto nearest = std::ranges::min_element(
      known, {}, [&](const std::string& candidate) { return edit_distance(shown, candidate); });
  const std::string hint = nearest == known.end() ? "" : fmt::format(" (nearest: {})", *nearest);
  return fmt::format("unknown {} {}{}; known: {}", kind, quote(name), hint, fmt::join(known, ", "));
}

}  // namespace riffle
