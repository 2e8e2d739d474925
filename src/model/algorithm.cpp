#include <array>

#include "base/text.h"
#include "riffle/cluster.h"
#include "riffle/error.h"

namespace riffle {
namespace {

constexpr std::array<std::string_view, 7> kNames{
    "auto", "ring", "halving-doubling", "recursive-doubling", "direct", "two-level", "tree"};

}  // namespace

std::string_view name_of(Algorithm algorithm) {
  return kNames.at(static_cast<std::size_t>(algorithm));
}

Algorithm parse_algorithm(std::string_view text, std::string_view what) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == text) return static_cast<Algorithm>(i);
  const std::vector<std::string> known(kNames.begin(), kNames.end());
  usage_error("{}: {}", what, unknown_name("algorithm", text, known));
}

}  // namespace riffle
