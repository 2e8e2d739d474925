#include <algorithm>

#include "base/text.h"
#include "riffle/error.h"
#include "riffle/strategy.h"

namespace riffle {

std::vector<std::string> OptionInfo::words() const {
  std::vector<std::string> list;
  for (const std::string_view word : split(values, '|'))
    if (!std::ranges::all_of(word, [](unsigned char c) { return std::isupper(c) != 0; }))
      list.emplace_back(word);
  return list;
}

Options::Options(const std::string& strategy, const std::vector<OptionInfo>& declared,
                 std::string_view text)
    : strategy_(strategy) {
  std::vector<std::string> known;
  for (const OptionInfo& info : declared) {
    values_.push_back({info, info.default_value(), false});
    known.push_back(info.key);
  }
  if (text.empty()) return;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    const auto found = std::ranges::find(values_, key, [](const Value& v) { return v.info.key; });
    if (found == values_.end())
      usage_error("strategy {}: {}", strategy_, unknown_name("option", key, known));
    if (equals == std::string_view::npos || equals + 1 == part.size())
      usage_error("strategy {}: {} needs a value ({}={})", strategy_, key, key, found->info.values);
    if (found->given) usage_error("strategy {}: {} is given twice", strategy_, key);
    found->value = std::string(part.substr(equals + 1));
    found->given = true;
  }
}

const Options::Value& Options::find(std::string_view key) const {
  const auto found = std::ranges::find(values_, key, [](const Value& v) { return v.info.key; });
  RIFFLE_CHECK(found != values_.end());
  return *found;
}

std::string Options::where(std::string_view key) const {
  return fmt::format("strategy {}: {}", strategy_, key);
}

const std::string& Options::text(std::string_view key) const {
  return find(key).value;
}
bool Options::given(std::string_view key) const {
  return find(key).given;
}

std::int64_t Options::integer(std::string_view key, std::int64_t low) const {
  const std::int64_t value = parse_integer(text(key), where(key));
  if (value < low || value > 1'000'000'000)
    usage_error("{}: {} must be from {} to 1000000000", where(key), value, low);
  return value;
}

double Options::number(std::string_view key, double low, double high) const {
  const double value = parse_number(text(key), where(key));
  if (value < low || value > high)
    usage_error("{}: {} must be from {} to {}", where(key), value, low, high);
  return value;
}

bool Options::boolean(std::string_view key) const {
  return parse_bool(text(key), where(key));
}

Bytes Options::bytes(std::string_view key) const {
  const Bytes size = parse_bytes(text(key), where(key));
  if (size.count < 1) usage_error("{}: must be at least one byte", where(key));
  return size;
}

const std::string& Options::choice(std::string_view key) const {
  const Value& value = find(key);
  const auto words = value.info.words();
  if (std::ranges::find(words, value.value) == words.end())
    usage_error("strategy {}: {}", strategy_, unknown_name(key, value.value, words));
  return value.value;
}

Wire Options::wire() const {
  return parse_wire(text("wire"), where("wire"));
}

Algorithm Options::algorithm() const {
  return parse_algorithm(text("algorithm"), where("algorithm"));
}

std::vector<std::pair<std::string, std::string>> Options::all() const {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Value& value : values_) pairs.emplace_back(value.info.key, value.value);
  return pairs;
}

}  // namespace riffle
