// When a host counts as slow: what is measured, planned around and printed means the same by it.
#pragma once

namespace riffle {

// A host is slow when its link or its computing takes at least this many times as long as is usual,
// which is the median over the hosts. Noise of busy machines stays below it.
constexpr double kSlowHost = 2.5;

}  // namespace riffle
