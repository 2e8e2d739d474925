#include "runtime/rounding.h"

#include <array>
#include <cstring>

#include "collective/reduce.h"

namespace riffle::runtime {
namespace {

// x <- x + factor * y
void add(const TensorView& x, double factor, const TensorView& y) {
  const std::array<const std::byte*, 2> inputs{x.data, y.data};
  collective::reduce_into(x.data, inputs, std::array{1.0, factor}, 1, x.count, x.dtype);
}

}  // namespace

void run_rounded(const Exchange& exchange, const TensorView& data, const Rounded& rounded,
                 const std::function<void(const Rounding&)>& exchange_data) {
  const TensorView& lost = rounded.lost;
  const Rounding rounding{exchange.wire, reinterpret_cast<float*>(lost.data), rounded.exact};
  if (exchange.payload == Payload::gradient) {
    // The second half of an all_reduce adds to what the first has lost.
    if (lost.data != nullptr && exchange.collective != Collective::all_gather) {
      add(data, 1, lost);
      std::memset(lost.data, 0, bytes_of(lost));
    }
    return exchange_data(rounding);
  }
  add(data, -1, rounded.reference);
  exchange_data(rounding);
  add(data, 1, rounded.reference);
  if (rounded.moves) std::memcpy(rounded.reference.data, data.data, bytes_of(data));
  if (lost.data != nullptr && exchange.merge.kind != Merge::Kind::outer) add(data, 1, lost);
}

}  // namespace riffle::runtime
