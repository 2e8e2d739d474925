#include <atomic>

#include "collective/call.h"
#include "collective/host.h"
#include "collective/point_to_point.h"
#include "collective/reduce.h"
#include "collective/rounding.h"
#include "riffle/collective.h"
#include "riffle/error.h"

namespace riffle {

struct Collectives::State {
  Engine& engine;
  collective::HostCollectives host;
  collective::PointToPoint messages;
  std::atomic<std::uint32_t> kept_lanes = 0;

  explicit State(Engine& e) : engine(e), host(e), messages(e) {}

  void run(const collective::Call& call, const CollectiveOptions& options);
};

namespace {

// Positions in the group, rack by rack.
std::vector<std::vector<int>> positions(std::span<const Group> racks, const Group& group) {
  std::vector<std::vector<int>> all;
  std::size_t placed = 0;
  for (const Group& rack : racks) {
    std::vector<int> members;
    for (const Rank rank : rack)
      if (const int member = group.index_of(rank); member >= 0) members.push_back(member);
    placed += members.size();
    if (!members.empty()) all.push_back(std::move(members));
  }
  if (!racks.empty() && placed != static_cast<std::size_t>(group.size()))
    usage_error("racks: {} of the {} members of {} are in one", placed, group.size(), print(group));
  return all;
}

collective::Call make_call(collective::Operation operation, const Group& group, TensorView data,
                           const CollectiveOptions& options) {
  collective::Call call;
  call.operation = operation;
  call.group = group;
  call.data = data;
  call.reduction = options.reduction;
  call.weights.assign(options.weights.begin(), options.weights.end());
  call.algorithm = options.algorithm;
  call.racks = positions(options.racks, group);
  call.piece = options.piece;
  call.lane = options.lane;
  call.channel = options.channel;
  call.padding = options.padding;
  call.rounding = options.rounding;
  call.epoch = options.epoch;
  call.bucket = options.bucket;
  call.step = options.step;
  call.background = options.background;
  return call;
}

collective::Call make_rooted(collective::Operation operation, const Group& group, Rank root,
                             TensorView data, const CollectiveOptions& options) {
  collective::Call call = make_call(operation, group, data, options);
  call.root = group.index_of(root);
  return call;
}

collective::Call make_shift(const Group& group, int places, TensorView data,
                            const CollectiveOptions& options) {
  collective::Call call = make_call(collective::Operation::shift, group, data, options);
  call.places = places;
  return call;
}

// A group of one, or a shift once around, has nothing to exchange.
bool is_alone(const collective::Call& call) {
  return call.group.size() == 1 ||
         (call.operation == collective::Operation::shift && call.places % call.group.size() == 0);
}

// The weight still counts in a sum.
void run_alone(const collective::Call& call, int self) {
  if (!call.adds() || call.reduction != Reduction::sum) return;
  double factor = call.weights.empty() ? 1 : call.weights[static_cast<std::size_t>(self)];
  if (call.operation == collective::Operation::shift) factor *= 2;  // with oneself
  if (factor != 1)
    collective::scale_in_place(call.data.data, factor, call.data.count, call.data.dtype);
}

}  // namespace

void Collectives::State::run(const collective::Call& call, const CollectiveOptions& options) {
  if (!call.group.contains(engine.rank()))
    usage_error("{}: rank {} is no member of {}", name_of(call.operation), engine.rank(),
                print(call.group));
  collective::validate(call);
  if (is_alone(call)) return run_alone(call, call.group.index_of(engine.rank()));
  if (call.algorithm == Algorithm::automatic && call.channel == 0 && host.covers(call.group)) {
    collective::round_own(call, call.group.index_of(engine.rank()));
    return host.run(call, after(options.timeout));
  }
  messages.run(call, after(options.timeout));
}

Collectives::Collectives(Engine& engine) : state_(std::make_unique<State>(engine)) {}
Collectives::~Collectives() = default;

std::uint32_t Collectives::kept_lanes() const {
  return state_->kept_lanes;
}

void Collectives::keep_lanes(std::uint32_t lanes) {
  state_->kept_lanes |= lanes;
}

void Collectives::release_lanes(std::uint32_t lanes) {
  state_->kept_lanes &= ~lanes;
}

void Collectives::all_reduce(const Group& group, TensorView data,
                             const CollectiveOptions& options) {
  state_->run(make_call(collective::Operation::all_reduce, group, data, options), options);
}

void Collectives::reduce_scatter(const Group& group, TensorView data,
                                 const CollectiveOptions& options) {
  state_->run(make_call(collective::Operation::reduce_scatter, group, data, options), options);
}

void Collectives::all_gather(const Group& group, TensorView data,
                             const CollectiveOptions& options) {
  state_->run(make_call(collective::Operation::all_gather, group, data, options), options);
}

void Collectives::broadcast(const Group& group, Rank root, TensorView data,
                            const CollectiveOptions& options) {
  state_->run(make_rooted(collective::Operation::broadcast, group, root, data, options), options);
}

void Collectives::reduce(const Group& group, Rank root, TensorView data,
                         const CollectiveOptions& options) {
  state_->run(make_rooted(collective::Operation::reduce, group, root, data, options), options);
}

void Collectives::all_to_all(const Group& group, const Parts& parts,
                             const CollectiveOptions& options) {
  state_->messages.run(make_call(collective::Operation::all_to_all, group, {}, options), parts,
                       after(options.timeout));
}

void Collectives::gather(const Group& group, Rank root, const Parts& parts,
                         const CollectiveOptions& options) {
  state_->messages.run(make_rooted(collective::Operation::gather, group, root, {}, options), parts,
                       after(options.timeout));
}

void Collectives::scatter(const Group& group, Rank root, const Parts& parts,
                          const CollectiveOptions& options) {
  state_->messages.run(make_rooted(collective::Operation::scatter, group, root, {}, options), parts,
                       after(options.timeout));
}

void Collectives::shift(const Group& group, int places, TensorView data,
                        const CollectiveOptions& options) {
  state_->run(make_shift(group, places, data, options), options);
}

void Collectives::barrier(const Group& group, const CollectiveOptions& options) {
  state_->run(make_call(collective::Operation::barrier, group, {}, options), options);
}

}  // namespace riffle
