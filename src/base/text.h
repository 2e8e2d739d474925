// Small text helpers shared by every parser: splitting, strict numbers, and the answer to a wrong
// name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace riffle {

// The largest whole number that readers who take numbers for doubles still tell from the next.
inline constexpr std::int64_t kMostWhole = std::int64_t{1} << 53;

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

// The text with control characters replaced, so that it stays on one line.
std::string one_line(std::string_view text);

// What one line of an error may quote of a user's text: control characters replaced, cut at 60.
std::string quote(std::string_view text);

// The whole text must be a finite number; anything else is a UsageError that names `what`.
double parse_number(std::string_view text, std::string_view what);
std::int64_t parse_integer(std::string_view text, std::string_view what);
bool parse_bool(std::string_view text, std::string_view what);

// "unknown model 'resnet5' (nearest: resnet50); known: bert-base, ..."
std::string unknown_name(std::string_view kind, std::string_view name,
                         std::span<const std::string> known);

}  // namespace riffle
