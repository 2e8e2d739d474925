// One-shot: everyone writes its data to a slot, posts it, and takes what it needs from the others'
// slots. One meeting; n*M bytes read by each member, so it is for small M. A member may run one
// call ahead of its peers: there are two slots, and a slot is written again only when all its
// readers have finished; a broadcast's root does not wait at all. After an error the data is
// untouched, but for the slices that all_gather and broadcast had copied already.
#include <cstring>

#include "collective/host.h"
#include "collective/reduce.h"

namespace riffle::collective {

namespace {

struct View {
  const Call& call;
  std::size_t size;  // of an element
  [[nodiscard]] std::size_t bytes() const { return call.data.count * size; }
  [[nodiscard]] Slice slice(const HostCall& host, int member) const {
    return slice_of(call.data.count, call.data.dtype, host.members(), member);
  }
};

// Puts `bytes` of our data, from `offset`, into a slot; its place there.
HostMemory::Location fill_slot(HostCall& host, std::size_t offset, std::size_t bytes) {
  std::byte* slot = host.slot();
  if (bytes > 0) std::memcpy(slot, host.call().data.data + offset, bytes);
  return host.location_of(slot);
}

// Elements of all members' data, added into ours.
void add_up(HostCall& host, const View& view, Slice slice) {
  if (slice.count == 0) return;
  auto& operands = host.operands();
  const std::size_t offset = slice.begin * view.size;
  std::byte* own = view.call.data.data + offset;
  for (int member = 0; member < host.members(); ++member)
    operands[static_cast<std::size_t>(member)] =
        member == host.self() ? own : host.view(member, view.bytes()) + offset;
  combine_into(own, operands, {view.call.reduction, view.call.weights, scale_of(view.call)},
               slice.count, view.call.data.dtype);
}

void gather(HostCall& host, const View& view) {
  const Slice own = view.slice(host, host.self());
  host.post_all(0, fill_slot(host, own.begin * view.size, own.count * view.size));
  for (int member = 0; member < host.members(); ++member) {
    if (member == host.self()) continue;
    host.collect(member, 0);
    const Slice theirs = view.slice(host, member);
    if (theirs.count == 0) continue;
    std::memcpy(view.call.data.data + theirs.begin * view.size,
                host.view(member, theirs.count * view.size), theirs.count * view.size);
  }
}

void broadcast(HostCall& host, const View& view) {
  const int root = view.call.root;
  if (host.self() == root) {
    host.post_all(0, fill_slot(host, 0, view.bytes()));
    return;
  }
  host.collect(root, 0);
  if (view.bytes() > 0)
    std::memcpy(view.call.data.data, host.view(root, view.bytes()), view.bytes());
}

void shift(HostCall& host, const View& view) {
  const int n = host.members();
  const int from = shift_target(host.self(), -view.call.places, n);
  host.post(shift_target(host.self(), view.call.places, n), 0, fill_slot(host, 0, view.bytes()));
  host.ring_bells();
  host.collect(from, 0);
  if (view.bytes() == 0) return;
  const ShiftShares shares = shares_of(view.call, host.self(), from);
  const std::byte* const operands[] = {view.call.data.data, host.view(from, view.bytes())};
  const double weights[] = {shares.own, shares.theirs};
  reduce_into(view.call.data.data, operands, weights, shares.scale, view.call.data.count,
              view.call.data.dtype);
}

}  // namespace

void one_shot(HostCall& host) {
  const Call& call = host.call();
  const View view{call, static_cast<std::size_t>(size_of(call.data.dtype).count)};
  switch (call.operation) {
    case Operation::all_reduce:
    case Operation::reduce:
    case Operation::reduce_scatter:
      host.post_all(0, fill_slot(host, 0, view.bytes()));
      host.collect_all(0);
      add_up(host, view,
             call.operation == Operation::reduce_scatter ? view.slice(host, host.self())
                                                         : Slice{0, call.data.count});
      return;
    case Operation::all_gather:
      return gather(host, view);
    case Operation::broadcast:
      return broadcast(host, view);
    case Operation::shift:
      return shift(host, view);
    case Operation::barrier:
      host.post_all(0);
      host.collect_all(0);
      return;
    case Operation::all_to_all:
    case Operation::gather:
    case Operation::scatter:
      return;  // always messages
  }
}

}  // namespace riffle::collective
