// What one member asks for, and how members make sure that they ask for the same.
//
// The first message between two members of a call is a CallHeader on a tag of its own. Whoever
// receives one compares it with its own call, so that calls that do not fit are named instead of
// adding up bytes of another call or waiting for a message that never comes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "riffle/collective.h"

namespace riffle::collective {

enum class Operation : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  shift,
  barrier,
  reduce,
  all_to_all,
  gather,
  scatter
};
std::string_view name_of(Operation operation);

struct Call {
  Operation operation = Operation::all_reduce;
  Group group;
  TensorView data;
  Reduction reduction = Reduction::mean;
  std::vector<double> weights = {};  // empty: all 1
  Algorithm algorithm = Algorithm::automatic;
  int root = 0;    // of a broadcast, reduce, gather or scatter: member index
  int places = 0;  // of a shift
  std::vector<std::vector<int>> racks = {};  // of two_level: member indices by rack
  int lane = 0;
  std::uint64_t channel = 0;  // instead of the lane; 0: none
  std::uint32_t epoch = 0;
  int bucket = -1;
  Step step = -1;
  Rounding rounding{};
  int padding = 0;          // elements of each slice that mean nothing
  Bytes piece{};            // of a message, where the vector is long; 0: as PointToPoint has it
  bool background = false;  // of this member alone

  [[nodiscard]] bool adds() const {
    return operation == Operation::all_reduce || operation == Operation::reduce_scatter ||
           operation == Operation::shift || operation == Operation::reduce;
  }
  [[nodiscard]] bool rounds() const { return rounding.wire != Wire::f32; }
  [[nodiscard]] CommContext context() const {
    return {.group = &group, .operation = name_of(operation), .bucket = bucket, .step = step};
  }
};

// UsageError for what no member could answer: weights of another number, negative, not finite or
// all zero; a reduction that the type has not; a root outside the group; a lane outside 0..15;
// misaligned data; an odd count of 8-bit elements; rounding of what is no mean or sum of f32.
void validate(const Call& call);

struct CallHeader {
  std::uint64_t count = 0;
  std::uint64_t group = 0;    // hash_of
  std::uint64_t weights = 0;  // hash of their bits; 0 without weights
  std::int64_t step = -1;
  std::int32_t bucket = -1;
  std::int32_t root_or_places = 0;
  std::uint32_t members = 0;
  std::uint8_t operation = 0;
  std::uint8_t dtype = 0;
  std::uint8_t reduction = 0;
  std::uint8_t algorithm = 0;
  std::uint32_t racks = 0;  // hash of the partition of two_level
  std::uint8_t wire = 0;
  std::uint8_t gave_up = 0;   // 1: the sender has given up the call; the rest is as it was
  std::uint16_t padding = 0;  // elements of each slice that mean nothing
  bool operator==(const CallHeader&) const = default;
};
static_assert(sizeof(CallHeader) == 56 && std::has_unique_object_representations_v<CallHeader>);

CallHeader header_of(const Call& call);
// "all_reduce of 1000 f32 (mean, ring) over {0 1 2}, bucket 3, step 7"; the group as a size and
// hash where only that is known.
std::string describe(const CallHeader& header);

}  // namespace riffle::collective
