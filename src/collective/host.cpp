#include "collective/host.h"

#include <algorithm>

#include "riffle/error.h"

namespace riffle::collective {

namespace {

std::size_t bytes_of(const TensorView& data) {
  return data.count * static_cast<std::size_t>(size_of(data.dtype).count);
}

// A lane serves one call at a time.
class Busy {
 public:
  Busy(std::atomic<bool>& busy, const Call& call) : busy_(busy) {
    if (busy_.exchange(true, std::memory_order_acquire))
      usage_error("{}: lane {} is busy with another call", name_of(call.operation), call.lane);
  }
  ~Busy() { busy_.store(false, std::memory_order_release); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  std::atomic<bool>& busy_;
};

// Members tell each other where their data is. Whether all of it can be worked on in place is the
// same answer on all members that have to know.
bool meet_in_place(HostCall& host) {
  const Call& call = host.call();
  const auto own = host.locate(call.data.data, bytes_of(call.data));
  const bool root = host.self() == call.root;
  if (call.operation == Operation::shift) {
    const int n = host.members();
    const int to = shift_target(host.self(), call.places, n);
    const int from = shift_target(host.self(), -call.places, n);
    host.post(to, 0);
    if (from != to) host.post(from, 0);
    host.ring_bells();
    host.collect(from, 0);
    if (from != to) host.collect(to, 0);
    return false;  // the target reads what we overwrite
  }
  if (call.operation == Operation::broadcast && !root) {
    host.post(call.root, 0);
    host.ring_bells();
    return host.collect(call.root, 0).data != Post::nowhere;
  }
  host.post_all(0, own);
  bool in_place = own != Post::nowhere;
  for (int member = 0; member < host.members(); ++member) {
    if (member == host.self()) continue;
    const bool placed = host.collect(member, 0).data != Post::nowhere;
    if (call.operation != Operation::broadcast) in_place = in_place && placed;
  }
  return in_place;
}

// One meeting instead of two, for more bytes moved. For a pair that pays only for very little data;
// with more members, who often share cores, a meeting costs more. docs/performance.md has figures.
std::size_t one_shot_limit(int members) {
  return members == 2 ? std::size_t{1} << 10 : LaneArea::slot_bytes;
}

void dispatch(HostCall& host) {
  if (bytes_of(host.call().data) <= one_shot_limit(host.members()))
    one_shot(host);
  else if (meet_in_place(host))
    zero_copy(host);
  else
    staged(host);
}

}  // namespace

HostCollectives::HostCollectives(Engine& engine) : engine_(engine) {}

bool HostCollectives::covers(const Group& group) const {
  HostMemory* memory = engine_.host_memory();
  if (memory == nullptr) return false;
  const auto& local = memory->ranks().ranks();
  return std::includes(local.begin(), local.end(), group.begin(), group.end());
}

void HostCollectives::run(const Call& call, Deadline deadline) {
  Lane& lane = lanes_.at(static_cast<std::size_t>(call.lane));
  const Busy busy(lane.busy, call);
  if (!lane.state) lane.state = std::make_unique<HostLane>(engine_, call.lane);
  HostCall host(*lane.state, call, deadline);
  try {
    dispatch(host);
    host.complete();
  } catch (const CommError& error) {
    host.abandon(error.rank(), error.failure());
    throw;
  }
}

int shift_target(int member, int places, int members) {
  return ((member + places) % members + members) % members;
}

double scale_of(const Call& call) {
  if (call.reduction != Reduction::mean) return 1;
  if (call.weights.empty()) return 1.0 / call.group.size();
  double sum = 0;
  for (const double weight : call.weights) sum += weight;
  return 1 / sum;
}

ShiftShares shares_of(const Call& call, int self, int from) {
  if (call.weights.empty()) return {1, 1, call.reduction == Reduction::sum ? 1.0 : 0.5};
  const double own = call.weights[static_cast<std::size_t>(self)];
  const double theirs = call.weights[static_cast<std::size_t>(from)];
  if (call.reduction == Reduction::sum) return {own, theirs, 1};
  if (own + theirs == 0) return {1, 0, 1};  // neither counts: we keep our own
  return {own, theirs, 1 / (own + theirs)};
}

}  // namespace riffle::collective
