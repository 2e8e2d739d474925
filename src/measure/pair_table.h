// Something known about pairs of hosts, by their places; it may be missing for some.
#pragma once

#include <optional>
#include <vector>

namespace riffle::measure {

template <typename T>
class PairTable {
 public:
  explicit PairTable(int size = 0)
      : size_(size), values_(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)) {}

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] std::optional<T>& at(int from, int to) { return values_[place(from, to)]; }
  [[nodiscard]] const std::optional<T>& at(int from, int to) const {
    return values_[place(from, to)];
  }
  void set_both(int a, int b, const T& value) { at(a, b) = at(b, a) = value; }

 private:
  [[nodiscard]] std::size_t place(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(size_) +
           static_cast<std::size_t>(to);
  }

  int size_;
  std::vector<std::optional<T>> values_;
};

}  // namespace riffle::measure
