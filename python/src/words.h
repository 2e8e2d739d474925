// Words for the enumerators of the core, and back. A wrong word is answered with the known ones.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "riffle/error.h"
#include "riffle/program.h"

namespace riffle::python {

template <typename E, std::size_t N>
E parse_word(std::string_view text, std::string_view what, const std::array<E, N>& known) {
  std::string words;
  for (const E each : known) {
    if (name_of(each) == text) return each;
    words += words.empty() ? "" : " ";
    words += name_of(each);
  }
  usage_error("{} '{}' is not known; known: {}", what, text, words);
}

inline Payload parse_payload(std::string_view text) {
  using enum Payload;
  return parse_word(text, "payload", std::array{gradient, weight, buffers, state});
}
inline Collective parse_collective(std::string_view text) {
  using enum Collective;
  return parse_word(text, "collective", std::array{all_reduce, reduce_scatter, all_gather, shift});
}
inline Start parse_start(std::string_view text) {
  using enum Start;
  return parse_word(text, "start",
                    std::array{bucket_ready, bucket_stepped, backward_done, step_done});
}

inline LowRank::Factor parse_factor(std::string_view text) {
  using enum LowRank::Factor;
  return parse_word(text, "factor", std::array{none, left, right});
}

}  // namespace riffle::python
