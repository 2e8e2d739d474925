// What a bad input is answered with: tests of every module want one line that names its cause.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "riffle/error.h"

namespace riffle {

// The UsageError's message, checked to be one line; a failure of the test when none is thrown.
template <typename Function>
std::string refusal(Function&& function) {
  try {
    function();
  } catch (const UsageError& error) {
    const std::string message = error.what();
    EXPECT_FALSE(message.empty());
    EXPECT_LT(message.size(), 500U) << message;
    EXPECT_TRUE(std::ranges::all_of(message, [](unsigned char c) { return c >= 0x20; })) << message;
    return message;
  }
  ADD_FAILURE() << "nothing was refused";
  return "nothing was refused";
}

}  // namespace riffle
