// Messages of workers that move in step, as one flow.
#include "simulate/network.h"

namespace riffle {

bool Network::bundle(int path_id, const Bundle& bundle, double bytes, const Cargo& cargo,
                     double now) {
  ClassUse& up = use_of(bundle.ranks[bundle.first], kUp);
  ClassUse& down = use_of(bundle.ranks[bundle.receivers[0]], kDown);
  if (up.flows > 0 || up.bundle >= 0 || down.flows > 0 || down.bundle >= 0) return false;
  const int id = new_flow();
  up.bundle = down.bundle = id;
  Flow& flow = flows_[id];
  flow.path = path_id;
  flow.copies = bundle.count;
  flow.rank = {bundle.ranks[bundle.first], bundle.ranks[bundle.receivers[0]]};
  flow.cargo = cargo;
  if (free_bundles_.empty()) {
    flow.bundle = static_cast<int>(bundles_.size());
    bundles_.push_back(bundle);
  } else {
    flow.bundle = free_bundles_.back();
    free_bundles_.pop_back();
    bundles_[flow.bundle] = bundle;
  }
  const int stream_id = paths_[path_id].stream;
  Stream& stream = streams_[stream_id];
  advance(stream, now);
  enqueue(stream_id, id, stream.served + bytes);
  weigh(stream_id, bundle.count, now);
  return true;
}

void Network::end_bundle(int id) {
  Flow& flow = flows_[id];
  use_of(flow.rank[kUp], kUp).bundle = -1;
  use_of(flow.rank[kDown], kDown).bundle = -1;
  free_bundles_.push_back(flow.bundle);
  flow.bundle = -1;
}

// The same messages, each for itself, in the same stream with the same end.
void Network::dissolve_bundle(int id) {
  const Bundle bundle = bundles_[flows_[id].bundle];
  const Flow whole = flows_[id];
  unlink(id);
  end_bundle(id);
  flows_[id].next = free_flow_;
  free_flow_ = id;
  for (int i = 0; i < bundle.count; ++i) {
    const int each = new_flow();
    Flow& flow = flows_[each];
    flow.path = whole.path;
    flow.copies = 1;
    flow.bundle = -1;
    const int to = bundle.receivers[i];
    flow.rank = {bundle.ranks[bundle.first + i], bundle.ranks[to]};
    flow.cargo = {whole.cargo.collective, whole.cargo.round, bundle.first + i, to};
    flow.stream = whole.stream;
    // Nobody is there: no link gets crowded.
    enter_port(each, kUp, streams_[whole.stream].last);
    enter_port(each, kDown, streams_[whole.stream].last);
    enqueue(whole.stream, each, whole.tag);
  }
}

}  // namespace riffle
