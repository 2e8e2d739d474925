// Numbers with their units: what parses is spelled so that it parses back.
#include "property.h"
#include "riffle/units.h"

using namespace riffle;  // NOLINT(google-build-using-namespace): a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  if (const auto time = fuzz::parsed([&] { return parse_seconds(text, "t"); }))
    fuzz::require(parse_seconds(spell(*time), "t") == *time, "a time", spell(*time));
  if (const auto rate = fuzz::parsed([&] { return parse_bandwidth(text, "b"); }))
    fuzz::require(parse_bandwidth(spell(*rate), "b") == *rate, "a rate", spell(*rate));
  if (const auto bytes = fuzz::parsed([&] { return parse_bytes(text, "s"); }))
    fuzz::require(parse_bytes(spell(*bytes), "s") == *bytes, "a size", spell(*bytes));
  if (const auto cost = fuzz::parsed([&] { return parse_seconds_per_byte(text, "c"); }))
    fuzz::require(parse_seconds_per_byte(spell(*cost), "c") == *cost, "a cost", spell(*cost));
  if (const auto part = fuzz::parsed([&] { return parse_percent(text, "p"); }))
    fuzz::require(parse_percent(spell_percent(*part), "p") == *part, "a percentage",
                  spell_percent(*part));
  return 0;
}
