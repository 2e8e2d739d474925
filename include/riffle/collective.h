// Collectives over any list of ranks. A group costs nothing: it is a list, there is no set-up and
// no traffic to make one.
//
// Order. A lane is serial on each rank: on one lane, any two ranks must make the calls they share
// in the same order (they do: all compute the same program), one at a time. Lanes are independent
// of each other; calls of several lanes run side by side, each on the thread that made it. A call
// that failed counts as made. Members that may
// have stopped at different calls go on together in a higher epoch, where counting starts anew.
//
// Results are bit-identical on all members, and from run to run for one group and algorithm, which
// fix the order of additions (rank order in shared memory). 16-bit types are added in f32; over
// point-to-point partial sums travel in the data's own type.
//
// Mismatched calls (size, dtype, operation, order) are CommError (mismatch) on the members that
// see them, with both calls in words. docs/collectives.md says for each collective and algorithm
// whether a survivor's buffer is untouched or undefined after an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "riffle/cluster.h"
#include "riffle/engine.h"
#include "riffle/program.h"
#include "riffle/trace.h"
#include "riffle/world.h"

namespace riffle {

// A dense vector that belongs to somebody else, to be worked on in place; each type needs its
// natural alignment.
struct TensorView {
  std::byte* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::f32;
};
TensorView tensor_view(std::span<float> values);
TensorView tensor_view(std::span<double> values);

// Means and weights are for floating point, the bits for integers. In 8 bits a vector must have an
// even count: a message of one byte says that its sender has failed.
enum class Reduction { sum, mean, product, min, max, bit_and, bit_or, bit_xor };
std::string_view name_of(Reduction reduction);

// How f32 values travel: rounded, by a codec that docs/wire.md describes. Sums are in f32; partial
// sums are rounded where they travel, and so is the result of an all_reduce, so that all members
// hold the same bits. What a member's own rounding takes away is added to `lost`, in units of its
// own data: over the members, sum(w*data before) = sum(w)*mean + sum(w*lost), up to f32 rounding. A
// shift rounds what it sends, and its own copy of that. What an all_gather loses counts as lost by
// the second half of a mean: times the number of members.
struct Rounding {
  Wire wire = Wire::f32;
  float* lost = nullptr;  // as many values as the data has; nullptr: nobody keeps it
  std::size_t exact = 0;  // values at the end of the data that travel as they are
};

struct CollectiveOptions {
  // 0..15; calls of one lane are serial, lanes run side by side.
  int lane = 0;
  Reduction reduction = Reduction::mean;
  // Per member, in the group's order; empty means 1 for each. The sum is sum(w*x), the mean that
  // over sum(w). All members must pass the same.
  std::span<const double> weights = {};
  // Automatic: shared memory where all members are on one host; else by a fixed table. Who knows
  // the network asks a CostModel (cost.h) and says.
  Algorithm algorithm = Algorithm::automatic;
  // The racks of two_level, which must cover the group; by default the ranks of one host are one.
  // All members must pass the same.
  std::span<const Group> racks = {};
  // Between hosts long vectors travel in messages of about this size (Cluster::piece). 0: 256 KiB.
  // All members must pass the same.
  Bytes piece{};
  // The whole call takes at most this long, then it fails.
  Seconds timeout{600};
  // The call is made beside threads that compute: it sleeps soon instead of spinning.
  bool background = false;
  // The epoch of the membership; it never goes back.
  std::uint32_t epoch = 0;
  // Other than 0: the calls of this channel are counted by themselves, apart from all lanes, of
  // which there are few; they travel as messages. One at a time, as on a lane.
  std::uint64_t channel = 0;
  // Elements at the end of each slice that fill it up to whole lines; members compare it. Below 64.
  int padding = 0;
  // all_reduce, reduce_scatter, all_gather and shift of f32; in shared memory each member rounds
  // its own data, and nothing after that.
  Rounding rounding{};
  // What an error says the call was for.
  int bucket = -1;
  Step step = -1;
};

// The part of `count` elements that member `index` of `members` owns in reduce_scatter and
// all_gather: contiguous, in order, all boundaries on 64 bytes, as even as that allows (the last
// ones may be short or empty).
struct Slice {
  std::size_t begin = 0;
  std::size_t count = 0;
  bool operator==(const Slice&) const = default;
};
Slice slice_of(std::size_t count, DType dtype, int members, int index);

// Equal for equal lists of ranks, on every rank and in every run.
std::uint64_t hash_of(const Group& group);

class Collectives {
 public:
  // The engine must outlive it. One object per engine: it counts the calls of each lane.
  explicit Collectives(Engine& engine);
  ~Collectives();

  // Lanes that somebody keeps for itself, as bits, so that users of one engine stay apart. Calls do
  // not look at it. From any thread.
  [[nodiscard]] std::uint32_t kept_lanes() const;
  void keep_lanes(std::uint32_t lanes);
  void release_lanes(std::uint32_t lanes);

  // UsageError where this rank is no member of the group. Groups of one are no-ops (a sum with a
  // weight still scales).

  // data <- reduction over the members.
  void all_reduce(const Group& group, TensorView data, const CollectiveOptions& options = {});
  // Own slice of data <- reduction over the members; the rest of data is undefined afterwards.
  void reduce_scatter(const Group& group, TensorView data, const CollectiveOptions& options = {});
  // Every slice of data <- the owner's.
  void all_gather(const Group& group, TensorView data, const CollectiveOptions& options = {});
  // data <- root's. `root` is a rank.
  void broadcast(const Group& group, Rank root, TensorView data,
                 const CollectiveOptions& options = {});
  // root's data <- reduction over the members; that of the others is undefined afterwards.
  void reduce(const Group& group, Rank root, TensorView data,
              const CollectiveOptions& options = {});
  // What member i of the group gets from this member, and what it sends: `out` and `in` have a part
  // for each member, in the group's order. A part must have the size that the other side expects;
  // `dtype` is compared only. Parts of all_to_all go from all to all, those of gather to the root
  // and those of scatter from it; parts that do not take part must be empty, one's own is copied.
  struct Parts {
    std::span<const std::span<const std::byte>> out;
    std::span<const std::span<std::byte>> in;
    DType dtype = DType::u8;
  };
  void all_to_all(const Group& group, const Parts& parts, const CollectiveOptions& options = {});
  void gather(const Group& group, Rank root, const Parts& parts,
              const CollectiveOptions& options = {});
  void scatter(const Group& group, Rank root, const Parts& parts,
               const CollectiveOptions& options = {});
  // data <- mean (or sum, weighted alike) of own data and that of the member `places` back.
  void shift(const Group& group, int places, TensorView data,
             const CollectiveOptions& options = {});
  void barrier(const Group& group, const CollectiveOptions& options = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace riffle
