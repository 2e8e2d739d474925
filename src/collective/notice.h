// What a member that has given up a call says to those who wait for it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "riffle/comm_error.h"
#include "riffle/units.h"

namespace riffle::collective {

// The messages of a call that are not data, by the round of their tag.
inline constexpr std::uint32_t header_round = 0;
inline constexpr std::uint32_t notice_round = 0xffffffff;
// How long a message about failure may take, which a peer has sent before or takes at once.
inline constexpr Seconds notice_patience{1.0};

struct Notice {
  std::int32_t failure = 0;
  std::int32_t culprit = 0;
  std::array<char, 504> detail{};

  Notice() = default;
  Notice(CommFailure why, Rank who, std::string_view text)
      : failure(static_cast<std::int32_t>(why)), culprit(who) {
    std::copy_n(text.begin(), std::min(text.size(), detail.size()), detail.begin());
  }
  [[nodiscard]] std::string_view text() const {
    return {detail.data(), strnlen(detail.data(), detail.size())};
  }
};

}  // namespace riffle::collective
