#include "riffle/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "base/text.h"
#include "riffle/error.h"

namespace riffle {
namespace {

// Small units divide: 50 / 1e6 is the nearest number to 50e-6, 50 * 1e-6 is not.
struct Unit {
  std::string_view name;
  double multiply = 1;
  double divide = 1;

  [[nodiscard]] constexpr double to_base(double value) const { return value * multiply / divide; }
  [[nodiscard]] constexpr double from_base(double value) const { return value / multiply * divide; }
};

constexpr std::array<Unit, 4> kTime{{{"ns", 1, 1e9}, {"us", 1, 1e6}, {"ms", 1, 1e3}, {"s"}}};
constexpr std::array<Unit, 8> kRate{{{"bps", 0.125},
                                     {"Kbps", 125.0},
                                     {"Mbps", 125e3},
                                     {"Gbps", 125e6},
                                     {"B/s", 1.0},
                                     {"KB/s", 1e3},
                                     {"MB/s", 1e6},
                                     {"GB/s", 1e9}}};
constexpr std::array<Unit, 7> kSize{{{"B", 1},
                                     {"KB", 1e3},
                                     {"MB", 1e6},
                                     {"GB", 1e9},
                                     {"KiB", 1024.0},
                                     {"MiB", 1048576.0},
                                     {"GiB", 1073741824.0}}};
constexpr std::array<Unit, 1> kPercent{{{"%", 1, 100}}};

std::string names(std::span<const Unit> units) {
  std::string list;
  for (const Unit& unit : units) list += fmt::format("{}{}", list.empty() ? "" : " ", unit.name);
  return list;
}

double parse_quantity(std::string_view text, std::string_view what, std::span<const Unit> units) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789.+-eE"), text.size());
  const std::string_view suffix = text.substr(digits);
  for (const Unit& unit : units) {
    if (suffix != unit.name) continue;
    const double value = unit.to_base(parse_number(text.substr(0, digits), what));
    if (value < 0) usage_error("{}: {} is negative", what, quote(text));
    if (!std::isfinite(value)) usage_error("{}: {} is too large", what, quote(text));
    return value;
  }
  if (suffix.empty())
    usage_error("{}: {} has no unit (units that fit: {})", what, quote(text), names(units));
  usage_error("{}: {} has an unknown unit (units that fit: {})", what, quote(text), names(units));
}

// The largest unit that leaves a number of at least one; the first when all are too large.
const Unit& best_unit(double value, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units)
    if (std::abs(value) >= unit.to_base(0.9995)) best = &unit;
  return *best;
}

std::string significant(double value) {
  const double size = std::abs(value);
  if (size >= 99.95 || value == 0) return fmt::format("{:.0f}", value);
  return size >= 9.995 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

std::string print_as(double value, std::span<const Unit> units) {
  const Unit& unit = best_unit(value, units);
  return fmt::format("{} {}", significant(unit.from_base(value)), unit.name);
}

// The shortest of all spellings that parse back to the same value. Scaling rounds, so the number
// that scales back to the value may be a neighbour of the one computed: two steps off at most.
std::string spell_as(double value, std::span<const Unit> units) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::string best;
  for (const Unit& unit : units) {
    const double scaled = unit.from_base(value);
    const double below = std::nextafter(scaled, -infinity);
    const double above = std::nextafter(scaled, infinity);
    for (const double candidate :
         {std::round(scaled), scaled, below, above, std::nextafter(below, -infinity),
          std::nextafter(above, infinity)}) {
      if (unit.to_base(candidate) != value) continue;
      std::string text = fmt::format("{}{}", candidate, unit.name);
      if (best.empty() || text.size() < best.size()) best = std::move(text);
    }
  }
  return best;
}

constexpr std::span<const Unit> rate_bits() {
  return std::span(kRate).first(4);
}
constexpr std::array<Unit, 4> kBinarySize{
    {{"B", 1}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}}};

}  // namespace

Seconds parse_seconds(std::string_view text, std::string_view what) {
  return Seconds(parse_quantity(text, what, kTime));
}

Bandwidth parse_bandwidth(std::string_view text, std::string_view what) {
  const Bandwidth rate{parse_quantity(text, what, kRate)};
  if (rate.bytes_per_second <= 0) usage_error("{}: {} must be above zero", what, quote(text));
  return rate;
}

Bytes parse_bytes(std::string_view text, std::string_view what) {
  const double count = parse_quantity(text, what, kSize);
  if (count > 9e15) usage_error("{}: {} is too large", what, quote(text));
  if (count != std::floor(count)) usage_error("{}: {} is not whole bytes", what, quote(text));
  return Bytes{static_cast<std::int64_t>(count)};
}

SecondsPerByte parse_seconds_per_byte(std::string_view text, std::string_view what) {
  return {parse_quantity(text, what, kTime)};
}

double parse_percent(std::string_view text, std::string_view what) {
  return parse_quantity(text, what, kPercent);
}

std::string print(Seconds time) {
  return print_as(time.count(), kTime);
}
std::string print(Bytes size) {
  return print_as(static_cast<double>(size.count), kBinarySize);
}
std::string print(Bandwidth rate) {
  return print_as(rate.bytes_per_second, rate_bits());
}

std::string spell(Seconds time) {
  return spell_as(time.count(), kTime);
}
std::string spell(Bytes size) {
  return spell_as(static_cast<double>(size.count), kSize);
}
std::string spell(Bandwidth rate) {
  return spell_as(rate.bytes_per_second, kRate);
}
std::string spell(SecondsPerByte cost) {
  return spell_as(cost.value, kTime);
}

std::string spell_percent(double fraction) {
  return spell_as(fraction, kPercent);
}

}  // namespace riffle
