#include "runtime/low_rank.h"

#include <cstring>

#include "codec/low_rank.h"
#include "runtime/memory.h"

namespace riffle::runtime {
namespace {

template <typename T>
codec::Factors<T> typed(const Factored& each) {
  return {.matrix = reinterpret_cast<T*>(each.matrix.data),
          .rows = each.rows,
          .columns = each.columns,
          .left = reinterpret_cast<T*>(each.left.data),
          .right = reinterpret_cast<T*>(each.right.data),
          .rank = each.rank};
}

// Calls visit(factors, lost) with the element type of each matrix.
template <typename Visit>
void for_each(const std::vector<Factored>& all, const Visit& visit) {
  for (const Factored& each : all)
    if (each.matrix.dtype == DType::f32)
      visit(typed<float>(each), reinterpret_cast<float*>(each.lost.data));
    else
      visit(typed<double>(each), reinterpret_cast<double*>(each.lost.data));
}

}  // namespace

void run_low_rank(const Flight& flight, const std::function<void()>& exchange_data) {
  if (flight.exchange.low_rank.factor == LowRank::Factor::left) {
    for (const auto& [values, travelling] : flight.whole)
      std::memcpy(travelling.data, values.data, bytes_of(values));
    for_each(flight.factored,
             [](const auto& factors, auto* lost) { codec::take_left(factors, lost); });
    exchange_data();
    for (const auto& [values, travelling] : flight.whole)
      std::memcpy(values.data, travelling.data, bytes_of(values));
    return;
  }
  for_each(flight.factored,
           [](const auto& factors, auto* /*lost*/) { codec::take_right(factors); });
  exchange_data();
  for_each(flight.factored,
           [](const auto& factors, auto* lost) { codec::put_back(factors, lost); });
}

}  // namespace riffle::runtime
