// A formula as papers write it, and its value.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace riffle {

using FormulaNames = std::map<std::string, double, std::less<>>;

// "2(N-1)/N + log2 R": numbers, names, + - * / ( ), log2 of what follows, and a product where a
// parenthesis follows a value. UsageError for anything else, and for a name that is not given.
double evaluate(std::string_view formula, const FormulaNames& names);

}  // namespace riffle
