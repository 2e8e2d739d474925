#include "base/json.h"

#include <cmath>
#include <limits>

#include "base/text.h"
#include "riffle/error.h"

namespace riffle {
namespace {

constexpr int kDeepest = 64;

// Nesting is counted before the parser recurses; brackets inside strings do not count.
void refuse_deep_nesting(std::string_view text, std::string_view source) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest)
        usage_error("{}: JSON nested deeper than {} levels at byte {}", source, kDeepest, i);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

}  // namespace

Json parse_json(std::string_view text, std::string_view source) {
  refuse_deep_nesting(text, source);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    usage_error("{}: not valid JSON at byte {} of {}", source, error.byte, text.size());
  } catch (const Json::exception&) {
    usage_error("{}: a number does not fit", source);
  }
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
  const auto value = value_->get<double>();
  if (value != std::floor(value)) fail("expected a whole number");
  if (value < static_cast<double>(low) || value > static_cast<double>(high))
    fail(fmt::format("must be from {} to {}", low, high));
  return value_->is_number_integer() ? value_->get<std::int64_t>()
                                     : static_cast<std::int64_t>(value);
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
