#include "collective/control.h"

#include <cstring>
#include <vector>

namespace riffle::collective {

// Bytes travel as elements, padded to whole ones.
void Control::broadcast(std::span<std::byte> bytes) const {
  if (ranks.size() == 1 || bytes.empty()) return;
  std::vector<float> words((bytes.size() + sizeof(float) - 1) / sizeof(float));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  collectives.broadcast(ranks, ranks.ranks().front(), tensor_view(words), options());
  std::memcpy(bytes.data(), words.data(), bytes.size());
}

std::string Control::broadcast(std::string text) const {
  std::uint64_t size = text.size();
  broadcast(std::as_writable_bytes(std::span(&size, 1)));
  text.resize(size);
  broadcast(std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

void Control::all_reduce(std::span<double> values, Reduction reduction) const {
  collectives.all_reduce(ranks, tensor_view(values), options(reduction));
}

}  // namespace riffle::collective
