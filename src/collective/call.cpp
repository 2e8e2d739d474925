#include "collective/call.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "riffle/error.h"

namespace riffle::collective {
namespace {

std::uint64_t hash_of_weights(const std::vector<double>& weights) {
  if (weights.empty()) return 0;
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a over words
  for (const double weight : weights)
    hash = (hash ^ std::bit_cast<std::uint64_t>(weight)) * 0x100000001b3ULL;
  return hash;
}

std::uint32_t hash_of_racks(const Call& call) {
  if (call.algorithm != Algorithm::two_level) return 0;
  std::uint64_t hash = 1;
  for (const auto& rack : call.racks) hash = hash * 0x100000001b3ULL + hash_of(Group(rack));
  return static_cast<std::uint32_t>(hash >> 32);
}

void check_reduction(const Call& call) {
  const auto reduction = call.reduction;
  const DType dtype = call.data.dtype;
  const bool integer = is_integer(dtype);
  const bool bits = reduction == Reduction::bit_and || reduction == Reduction::bit_or ||
                    reduction == Reduction::bit_xor;
  if (integer ? reduction == Reduction::mean : bits)
    usage_error("{}: there is no {} of {}", name_of(call.operation), name_of(reduction),
                name_of(dtype));
  const bool sums = reduction == Reduction::sum || reduction == Reduction::mean;
  if ((!sums || integer) && !call.weights.empty())
    usage_error("{}: weights are for sums and means of floating point", name_of(call.operation));
}

void check_rounding(const Call& call) {
  const auto what = name_of(call.operation);
  const bool travels = call.operation == Operation::all_gather ||
                       (call.adds() && call.operation != Operation::reduce);
  const bool sums = call.reduction == Reduction::sum || call.reduction == Reduction::mean;
  if (!travels || !sums || call.data.dtype != DType::f32)
    usage_error("{} ({}) of {}: only sums, means and gathers of f32 are rounded to {}", what,
                name_of(call.reduction), name_of(call.data.dtype), name_of(call.rounding.wire));
  if (call.rounding.exact > call.data.count)
    usage_error("{}: {} of {} values are exact", what, call.rounding.exact, call.data.count);
}

}  // namespace

std::string_view name_of(Operation operation) {
  constexpr std::array<std::string_view, 10> names{
      "all_reduce", "reduce_scatter", "all_gather", "broadcast", "shift",
      "barrier",    "reduce",         "all_to_all", "gather",    "scatter"};
  return names.at(static_cast<std::size_t>(operation));
}

void validate(const Call& call) {
  const auto what = name_of(call.operation);
  const int n = call.group.size();
  if (call.lane < 0 || call.lane > 15) usage_error("{}: lane {} is not in 0..15", what, call.lane);
  if (call.root < 0 || call.root >= n)
    usage_error("{}: the root is no member of {}", what, print(call.group));
  const auto size = static_cast<std::size_t>(size_of(call.data.dtype).count);
  if (reinterpret_cast<std::uintptr_t>(call.data.data) % size != 0)
    usage_error("{}: data of type {} must be aligned to {} bytes", what, name_of(call.data.dtype),
                size);
  if (size == 1 && call.data.count % 2 != 0)
    usage_error("{}: {} elements of 8 bits are an odd number", what, call.data.count);
  if (call.adds()) check_reduction(call);
  if (call.rounds()) check_rounding(call);
  if (call.weights.empty()) return;
  if (static_cast<int>(call.weights.size()) != n)
    usage_error("{}: {} weights for the {} members of {}", what, call.weights.size(), n,
                print(call.group));
  double sum = 0;
  for (const double weight : call.weights) {
    if (!std::isfinite(weight) || weight < 0)
      usage_error("{}: weight {} is not a finite number of at least 0", what, weight);
    sum += weight;
  }
  if (!(sum > 0)) usage_error("{}: all weights are 0", what);
}

CallHeader header_of(const Call& call) {
  const bool shift = call.operation == Operation::shift;
  return {.count = call.data.count,
          .group = hash_of(call.group),
          .weights = hash_of_weights(call.weights),
          .step = call.step,
          .bucket = call.bucket,
          .root_or_places = shift ? call.places : call.root,
          .members = static_cast<std::uint32_t>(call.group.size()),
          .operation = static_cast<std::uint8_t>(call.operation),
          .dtype = static_cast<std::uint8_t>(call.data.dtype),
          .reduction = static_cast<std::uint8_t>(call.reduction),
          .algorithm = static_cast<std::uint8_t>(call.algorithm),
          .racks = hash_of_racks(call),
          .wire = static_cast<std::uint8_t>(call.rounding.wire),
          .padding = static_cast<std::uint16_t>(call.padding)};
}

std::string describe(const CallHeader& header) {
  const auto operation = static_cast<Operation>(header.operation);
  std::string text{name_of(operation)};
  if (operation != Operation::barrier)
    text += fmt::format(" of {} {}", header.count, name_of(static_cast<DType>(header.dtype)));
  if (header.wire != 0) text += fmt::format(" as {}", name_of(static_cast<Wire>(header.wire)));
  if (header.padding > 0) text += fmt::format(", {} of each member's padding", header.padding);
  if (operation == Operation::broadcast || operation == Operation::scatter)
    text += fmt::format(" from member {}", header.root_or_places);
  if (operation == Operation::reduce || operation == Operation::gather)
    text += fmt::format(" to member {}", header.root_or_places);
  if (operation == Operation::shift) text += fmt::format(" by {}", header.root_or_places);
  text += fmt::format(" ({}{}, {})", name_of(static_cast<Reduction>(header.reduction)),
                      header.weights == 0 ? "" : fmt::format(" with weights #{:x}", header.weights),
                      name_of(static_cast<Algorithm>(header.algorithm)));
  text += fmt::format(" over a group of {} #{:x}", header.members, header.group);
  if (header.racks != 0) text += fmt::format(" in racks #{:x}", header.racks);
  if (header.bucket >= 0) text += fmt::format(", bucket {}", header.bucket);
  if (header.step >= 0) text += fmt::format(", step {}", header.step);
  return text;
}

}  // namespace riffle::collective
