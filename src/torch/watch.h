// Has somebody changed a gradient between backward and the update?
//
// Versions are not enough: torch's own clip_grad_norm_ and clip_grad_value_ change gradients behind
// their version counters in C++. So a mark also remembers the element that is furthest from zero,
// which every scaling and every clamping changes if it changes anything. Copies miss nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

namespace riffle::adapter {

class GradientWatch {
 public:
  // Marks these gradients as they are now; they may be undefined.
  void mark(const std::vector<at::Tensor>& gradients, bool copies);
  // The first that is not as it was marked; nothing where none was.
  [[nodiscard]] std::optional<std::size_t> changed(const std::vector<at::Tensor>& gradients) const;
  void clear() { marks_.clear(); }

 private:
  struct Mark {
    const void* data = nullptr;
    std::int64_t version = 0;
    std::size_t furthest = 0;  // where that element is
    std::uint64_t bits = 0;    // of it
    at::Tensor copy;           // undefined where none was wanted
  };
  [[nodiscard]] static bool holds(const Mark& mark, const at::Tensor& gradient);

  std::vector<Mark> marks_;
};

}  // namespace riffle::adapter
