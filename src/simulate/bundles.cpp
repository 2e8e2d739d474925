#include "simulate/bundles.h"

namespace riffle::simulator {

bool Bundles::start(int path, const Bundle& bundle, double bytes, const Cargo& cargo, double now) {
  const Rank from = bundle.ranks[bundle.first];
  const Rank to = bundle.ranks[bundle.receivers[0]];
  int& up = on(from, kUp);
  int& down = on(to, kDown);
  if (up >= 0 || down >= 0 || ports_.flows_of_class(from, kUp) > 0 ||
      ports_.flows_of_class(to, kDown) > 0)
    return false;
  const int id = flows_.add();
  up = down = id;
  Flow& flow = flows_[id];
  flow.path = path;
  flow.copies = bundle.count;
  flow.rank = {from, to};
  flow.cargo = cargo;
  if (free_.empty()) {
    flow.bundle = static_cast<int>(bundles_.size());
    bundles_.push_back(bundle);
  } else {
    flow.bundle = free_.back();
    free_.pop_back();
    bundles_[flow.bundle] = bundle;
  }
  const int stream = paths_[path].stream;
  streams_.advance(stream, now);
  streams_.put(stream, id, streams_[stream].served + bytes);
  streams_.weigh(stream, bundle.count, now);
  return true;
}

void Bundles::end(int id) {
  Flow& flow = flows_[id];
  on(flow.rank[kUp], kUp) = -1;
  on(flow.rank[kDown], kDown) = -1;
  free_.push_back(flow.bundle);
  flow.bundle = -1;
}

// The same messages, each for itself, in the same stream with the same end.
void Bundles::dissolve(int id) {
  const Bundle bundle = bundles_[flows_[id].bundle];
  const Flow whole = flows_[id];
  streams_.remove(id);
  end(id);
  flows_.take(id);
  for (int i = 0; i < bundle.count; ++i) {
    const int each = flows_.add();
    Flow& flow = flows_[each];
    flow.path = whole.path;
    flow.copies = 1;
    flow.bundle = -1;
    const int to = bundle.receivers[i];
    flow.rank = {bundle.ranks[bundle.first + i], bundle.ranks[to]};
    flow.cargo = whole.cargo;
    flow.cargo.from = bundle.first + i;
    flow.cargo.to = to;
    flow.stream = whole.stream;
    // Nobody is there: no link gets crowded.
    const double now = streams_[whole.stream].last;
    ports_.enter(each, kUp, now);
    ports_.enter(each, kDown, now);
    streams_.put(whole.stream, each, whole.tag);
  }
}

}  // namespace riffle::simulator
