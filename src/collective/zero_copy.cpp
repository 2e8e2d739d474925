// Zero-copy: all members' data is in memory that all map. Each member adds up its own slice over
// everybody's data and writes the result to everybody's, block by block while it is in the cache;
// a second meeting says that all are done. Each member reads M and writes M bytes, nothing is
// copied twice. After an error the data is undefined: a member may have written its slice of the
// result to some and not to others.
#include <algorithm>
#include <cstring>

#include "collective/host.h"
#include "collective/reduce.h"

namespace riffle::collective {

namespace {

// This much of every operand at a time, so that what was read is still in the cache when the result
// is written over it.
constexpr std::size_t block_bytes = std::size_t{16} << 10;

class InPlace {
 public:
  explicit InPlace(HostCall& host)
      : host_(host),
        data_(host.call().data),
        size_(static_cast<std::size_t>(size_of(data_.dtype).count)) {}

  // Our slice of everybody's data, added up into our own, and into everybody's where `share`.
  void add_up(bool share);
  // Everybody's slices, from their data.
  void gather();
  void fetch(int root);

 private:
  [[nodiscard]] Slice slice(int member) const {
    return slice_of(data_.count, data_.dtype, host_.members(), member);
  }
  std::byte* of(int member) {
    return member == host_.self() ? data_.data : host_.view(member, data_.count * size_);
  }

  HostCall& host_;
  TensorView data_;
  std::size_t size_;
};

void InPlace::add_up(bool share) {
  const Slice own = slice(host_.self());
  const double scale = scale_of(host_.call());
  const std::size_t block = block_bytes / size_;
  const std::size_t members = static_cast<std::size_t>(host_.members());
  auto& all = host_.views();
  for (std::size_t m = 0; m < members; ++m) all[m] = of(static_cast<int>(m));
  auto& operands = host_.operands();
  for (std::size_t at = own.begin; at < own.begin + own.count; at += block) {
    host_.check_self();
    const std::size_t count = std::min(block, own.begin + own.count - at);
    for (std::size_t m = 0; m < members; ++m) operands[m] = all[m] + at * size_;
    std::byte* out = data_.data + at * size_;
    combine_into(out, operands, {host_.call().reduction, host_.call().weights, scale}, count,
                 data_.dtype);
    if (!share) continue;
    for (std::size_t m = 0; m < members; ++m)
      if (static_cast<int>(m) != host_.self()) std::memcpy(all[m] + at * size_, out, count * size_);
  }
}

void InPlace::gather() {
  for (int step = 1; step < host_.members(); ++step) {  // from different members at a time
    const int member = (host_.self() + step) % host_.members();
    const Slice theirs = slice(member);
    if (theirs.count > 0)
      std::memcpy(data_.data + theirs.begin * size_, of(member) + theirs.begin * size_,
                  theirs.count * size_);
  }
}

void InPlace::fetch(int root) {
  std::memcpy(data_.data, of(root), data_.count * size_);
}

}  // namespace

void zero_copy(HostCall& host) {
  const Call& call = host.call();
  InPlace work(host);
  if (call.operation == Operation::broadcast) {
    if (host.self() == call.root) return host.collect_all(1);
    work.fetch(call.root);
    host.post(call.root, 1);
    return host.ring_bells();
  }
  if (call.operation == Operation::all_gather)
    work.gather();
  else
    work.add_up(call.operation != Operation::reduce_scatter);
  host.post_all(1);
  host.collect_all(1);
}

}  // namespace riffle::collective
