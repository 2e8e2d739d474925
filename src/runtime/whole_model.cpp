#include "runtime/whole_model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace riffle::runtime {
namespace {

// The average travels in pieces: a copy of the whole model would be the most memory that training
// needs. Small enough not to count, large enough for the network.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

}  // namespace

// Tensors of one type that follow each other share a piece; one that is larger than a piece has
// several.
void for_each_average(Exchanger& exchanger, const Values& values, std::size_t first,
                      const std::function<void(const Averaged&)>& visit) {
  Memory& memory = values.memory();
  const Block block = memory.allocate(kPieceBytes);
  std::vector<Averaged> parts;
  TensorView piece{block.bytes.data(), 0, DType::f32};
  const auto send = [&] {
    if (parts.empty()) return;
    exchanger.average(piece);
    for (const Averaged& part : parts) visit(part);
    parts.clear();
    piece.count = 0;
  };
  for (std::size_t t = first; t < values.tensors(); ++t) {
    const TensorView tensor = values.tensor(t);
    const std::size_t most = kPieceBytes / static_cast<std::size_t>(size_of(tensor.dtype).count);
    if (piece.dtype != tensor.dtype) send();
    piece.dtype = tensor.dtype;
    for (std::size_t offset = 0; offset < tensor.count;) {
      if (piece.count == most) send();
      const std::size_t count = std::min(tensor.count - offset, most - piece.count);
      const Averaged part{t, offset, part_of(tensor, offset, count),
                          part_of(piece, piece.count, count)};
      memory.copy(part.average, part.own);
      parts.push_back(part);
      piece.count += count;
      offset += count;
    }
  }
  send();
}

double consensus_distance(Exchanger& exchanger, const Values& values, std::size_t parameters) {
  Memory& memory = values.memory();
  double apart = 0;
  double length = 0;
  for_each_average(exchanger, values, 0, [&](const Averaged& part) {
    if (part.tensor >= parameters) return;
    length += memory.square_sum(part.average);
    memory.combine(part.average, std::array{part.average, part.own}, std::array{1.0, -1.0});
    apart += memory.square_sum(part.average);
  });
  exchanger.all_reduce(std::span(&apart, 1), Reduction::mean);
  return length > 0 ? std::sqrt(apart / length) : std::sqrt(apart);
}

}  // namespace riffle::runtime
