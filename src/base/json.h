// Reading JSON that people wrote: every error is one line with the file, the field and the value.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "riffle/units.h"

namespace riffle {

// Order of insertion is kept, so that files read as they were designed.
using Json = nlohmann::ordered_json;

// Parses text; `source` is the file's name for errors. Refuses nesting deeper than 64 levels and
// objects of more than 4096 fields, which no document of ours has, before recursion or the search
// for a field could hurt.
Json parse_json(std::string_view text, std::string_view source);

// The text as JSON can hold it: bytes that are no UTF-8 become U+FFFD.
std::string valid_utf8(std::string_view text);

// A value and the path that led to it ("plan.json: layers[3].elements"). Cheap to copy; the
// document must outlive it.
class JsonReader {
 public:
  JsonReader(const Json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  // The document must be {"riffle": kind, "version": version, ...}.
  void expect_document(std::string_view kind, int version) const;

  [[nodiscard]] bool has(std::string_view key) const;
  // UsageError when the field is absent.
  [[nodiscard]] JsonReader at(std::string_view key) const;
  [[nodiscard]] std::size_t size() const;  // of an array; UsageError for anything else
  [[nodiscard]] JsonReader at(std::size_t index) const;
  [[nodiscard]] std::vector<std::string> keys() const;  // of an object, in order

  [[nodiscard]] bool is_null() const { return value_->is_null(); }
  [[nodiscard]] bool is_text() const { return value_->is_string(); }
  [[nodiscard]] bool is_number() const { return value_->is_number(); }
  [[nodiscard]] std::string text() const;
  [[nodiscard]] double number() const;  // finite
  [[nodiscard]] double number_at_least(double low) const;
  [[nodiscard]] std::int64_t integer(std::int64_t low, std::int64_t high) const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] Seconds seconds() const { return Seconds(number_at_least(0)); }

  [[nodiscard]] const std::string& where() const { return where_; }
  // "where: value: problem"
  [[noreturn]] void fail(std::string_view problem) const;

 private:
  const Json* value_;
  std::string where_;
};

}  // namespace riffle
