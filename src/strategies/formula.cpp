#include "strategies/formula.h"

#include <charconv>
#include <cmath>

#include "base/text.h"
#include "riffle/error.h"

namespace riffle {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const FormulaNames& names) : text_(text), names_(names) {}

  double whole() {
    const double value = sum();
    if (peek() != '\0') wrong();
    return value;
  }

 private:
  double sum() {
    double value = product();
    for (;;) {
      if (take('+'))
        value += product();
      else if (take('-'))
        value -= product();
      else
        return value;
    }
  }
  double product() {
    double value = factor();
    for (;;) {
      if (take('*') || peek() == '(')
        value *= factor();
      else if (take('/'))
        value /= factor();
      else
        return value;
    }
  }
  double factor() {
    if (take('(')) {
      const double value = sum();
      if (!take(')')) wrong();
      return value;
    }
    if (std::isdigit(static_cast<unsigned char>(peek())) != 0) return number();
    const std::string_view word = name();
    if (word == "log2") return std::log2(factor());
    const auto found = names_.find(word);
    if (found == names_.end()) wrong();
    return found->second;
  }
  double number() {
    double value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) wrong();
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  std::string_view name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    if (at_ == begin) wrong();
    return text_.substr(begin, at_ - begin);
  }

  // The next character that is no space; 0 at the end.
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void wrong() const {
    throw UsageError(fmt::format("formula {}: cannot be read before {}", quote(text_),
                                 quote(text_.substr(at_))));
  }

  std::string_view text_;
  const FormulaNames& names_;
  std::size_t at_ = 0;
};

}  // namespace

double evaluate(std::string_view formula, const FormulaNames& names) {
  return Parser(formula, names).whole();
}

}  // namespace riffle
