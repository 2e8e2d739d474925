// Copying at the speed of memory.
#pragma once

#include <cstddef>

namespace riffle::collective {

// Past this much data in all, what is written does not stay in the cache until it is read.
constexpr std::size_t cached_bytes = std::size_t{8} << 20;

// Copies around the cache (non-temporal stores), so that the target's lines are not read first.
// Complete for other cores once the function returns and the caller releases.
void copy_around_cache(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace riffle::collective
