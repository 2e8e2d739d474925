// What holds for every parser and every text: it gives a value, or a UsageError of one line.
// Anything else ends the process, which the fuzzer reports together with the text.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "riffle/error.h"

namespace riffle::fuzz {

inline void require(bool holds, std::string_view what, std::string_view detail = "") {
  if (holds) return;
  std::fprintf(stderr, "property broken: %.*s: %.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

// The parsed value; nothing where the parser refused the text as it should.
template <typename Parse>
auto parsed(Parse&& parse) -> std::optional<decltype(parse())> {
  try {
    return parse();
  } catch (const UsageError& error) {
    const std::string_view message = error.what();
    require(!message.empty() && message.size() < 1000, "a message is short", message);
    for (const char c : message)
      require(static_cast<unsigned char>(c) >= 0x20, "a message is one line", message);
    return std::nullopt;
  }
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace riffle::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
