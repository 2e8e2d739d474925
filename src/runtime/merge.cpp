#include "runtime/merge.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "collective/reduce.h"
#include "riffle/error.h"
#include "runtime/layout.h"

namespace riffle::runtime {
namespace {

// out <- sum of factors[i] * inputs[i]
template <std::size_t n>
void combine(Elements out, const std::array<Elements, n>& inputs,
             const std::array<double, n>& factors) {
  std::array<const std::byte*, n> data;
  for (std::size_t i = 0; i < n; ++i) {
    RIFFLE_CHECK_EQ(inputs[i].count, out.count);
    data[i] = inputs[i].data;
  }
  collective::reduce_into(out.data, data, factors, 1, out.count, out.dtype);
}

}  // namespace

void merge_mix(Elements x, Elements mean, double xi) {
  combine<2>(x, {x, mean}, {xi, 1 - xi});
}

void merge_correct(Elements x, Elements mean, Elements snapshot, double scale) {
  combine<3>(x, {x, mean, snapshot}, {1, scale, -scale});
}

void merge_statistics(Elements x, Elements mean, Elements snapshot) {
  for (std::size_t i = 0; i < x.count; ++i) {
    const double local = value_at(x, i);
    const double agreed = value_at(mean, i);
    const double before = value_at(snapshot, i);
    double value = local + (agreed - before);
    if (value <= 0 && local > 0 && agreed > 0 && before > 0) value = std::min(local, agreed);
    set_value(x, i, value);
  }
}

void merge_outer(Elements x, Elements mean, const OuterState& state, const Merge& merge) {
  const Elements distance = mean;
  combine<2>(distance, {state.agreed, mean}, {1, -1});
  combine<2>(state.momentum, {state.momentum, distance}, {merge.momentum, 1});
  combine<3>(state.agreed, {state.agreed, distance, state.momentum},
             {1, -merge.learning_rate, -merge.learning_rate * merge.momentum});
  copy(x, state.agreed);
}

void subtract(Elements x, Elements y) {
  combine<2>(x, {x, y}, {1, -1});
}

void copy(Elements to, Elements from) {
  RIFFLE_CHECK_EQ(bytes_of(to), bytes_of(from));
  std::memcpy(to.data, from.data, bytes_of(from));
}

}  // namespace riffle::runtime
