#include "runtime/control.h"

#include <cstring>
#include <vector>

namespace riffle::runtime {

void Control::broadcast(std::span<std::byte> bytes) const {
  if (ranks.size() == 1 || bytes.empty()) return;
  std::vector<float> words((bytes.size() + sizeof(float) - 1) / sizeof(float));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  collectives.broadcast(ranks, ranks.ranks().front(), elements(words), options());
  std::memcpy(bytes.data(), words.data(), bytes.size());
}

void Control::all_reduce(std::span<double> values, Reduction reduction) const {
  collectives.all_reduce(ranks, elements(values), options(reduction));
}

}  // namespace riffle::runtime
