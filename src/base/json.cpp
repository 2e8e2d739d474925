#include "base/json.h"

#include <cmath>
#include <limits>

#include "base/text.h"
#include "riffle/error.h"

namespace riffle {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr int kMostFields = 4096;

// Levels and fields are counted before the parser sees them; what is inside strings does not count.
void refuse_unusual_shape(std::string_view text, std::string_view source) {
  std::vector<int> fields;  // colons so far, per open bracket
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      fields.push_back(0);
      if (fields.size() > kDeepest)
        usage_error("{}: JSON nested deeper than {} levels at byte {}", source, kDeepest, i);
    } else if (c == ']' || c == '}') {
      if (!fields.empty()) fields.pop_back();
    } else if (c == ':' && !fields.empty() && ++fields.back() > kMostFields) {
      usage_error("{}: JSON object with more than {} fields at byte {}", source, kMostFields, i);
    }
  }
}

}  // namespace

Json parse_json(std::string_view text, std::string_view source) {
  refuse_unusual_shape(text, source);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    usage_error("{}: not valid JSON at byte {} of {}", source, error.byte, text.size());
  } catch (const Json::exception&) {
    usage_error("{}: a number does not fit", source);
  }
}

std::string valid_utf8(std::string_view text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
      .get<std::string>();
}

void JsonReader::expect_document(std::string_view kind, int version) const {
  if (!value_->is_object()) fail("expected an object");
  const JsonReader tag = at("riffle");
  if (tag.text() != kind) tag.fail(fmt::format("expected \"{}\"", kind));
  const JsonReader number = at("version");
  const std::int64_t found = number.integer(0, std::numeric_limits<int>::max());
  if (found != version)
    number.fail(fmt::format("this riffle reads version {} of a {}", version, kind));
}

bool JsonReader::has(std::string_view key) const {
  return value_->is_object() && value_->contains(std::string(key));
}

JsonReader JsonReader::at(std::string_view key) const {
  if (!value_->is_object()) fail("expected an object");
  const auto found = value_->find(std::string(key));
  if (found == value_->end()) usage_error("{}: field \"{}\" is missing", where_, key);
  return {*found, fmt::format("{}: {}", where_, key)};
}

std::size_t JsonReader::size() const {
  if (!value_->is_array()) fail("expected a list");
  return value_->size();
}

JsonReader JsonReader::at(std::size_t index) const {
  RIFFLE_CHECK(index < size());
  return {(*value_)[index], fmt::format("{}[{}]", where_, index)};
}

std::vector<std::string> JsonReader::keys() const {
  if (!value_->is_object()) fail("expected an object");
  std::vector<std::string> all;
  for (const auto& [key, value] : value_->items()) all.push_back(key);
  return all;
}

std::string JsonReader::text() const {
  if (!value_->is_string()) fail("expected a text");
  return value_->get<std::string>();
}

double JsonReader::number() const {
  if (!value_->is_number()) fail("expected a number");
  const auto number = value_->get<double>();
  if (!std::isfinite(number)) fail("expected a finite number");
  return number;
}

double JsonReader::number_at_least(double low) const {
  const double value = number();
  if (value < low) fail(fmt::format("must be at least {}", low));
  return value;
}

std::int64_t JsonReader::integer(std::int64_t low, std::int64_t high) const {
  if (!value_->is_number()) fail("expected a whole number");
  const auto rounded = value_->get<double>();
  if (rounded != std::floor(rounded)) fail("expected a whole number");
  // A double tells whether it fits 64 bits at all; those are compared exactly.
  const bool fits = rounded >= -0x1p62 && rounded <= 0x1p62;
  const std::int64_t value = !fits                         ? 0
                             : value_->is_number_integer() ? value_->get<std::int64_t>()
                                                           : static_cast<std::int64_t>(rounded);
  if (!fits || value < low || value > high) fail(fmt::format("must be from {} to {}", low, high));
  return value;
}

bool JsonReader::boolean() const {
  if (!value_->is_boolean()) fail("expected true or false");
  return value_->get<bool>();
}

void JsonReader::fail(std::string_view problem) const {
  const std::string shown = value_->is_structured()
                                ? value_->type_name()
                                : value_->dump(-1, ' ', false, Json::error_handler_t::replace);
  usage_error("{}: {}: {}", where_, quote(shown), problem);
}

}  // namespace riffle
