#pragma once

#include <algorithm>
#include <vector>

namespace riffle {

// The upper one of two in the middle. There must be a value.
template <typename T>
T median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace riffle
