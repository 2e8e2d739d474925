#include "collective/call.h"
#include "collective/host.h"
#include "collective/point_to_point.h"
#include "collective/reduce.h"
#include "riffle/collective.h"
#include "riffle/error.h"

namespace riffle {

struct Collectives::State {
  Engine& engine;
  HostCollectives host;
  PointToPoint messages;

  explicit State(Engine& e) : engine(e), host(e), messages(e) {}

  void run(const Call& call, const CollectiveOptions& options);
};

namespace {

Call make_call(Operation operation, const Group& group, Elements data,
               const CollectiveOptions& options) {
  Call call;
  call.operation = operation;
  call.group = group;
  call.data = data;
  call.reduction = options.reduction;
  call.weights.assign(options.weights.begin(), options.weights.end());
  call.algorithm = options.algorithm;
  call.lane = options.lane;
  call.epoch = options.epoch;
  call.bucket = options.bucket;
  call.step = options.step;
  return call;
}

// A group of one, or a shift once around, has nothing to exchange.
bool is_alone(const Call& call) {
  return call.group.size() == 1 ||
         (call.operation == Operation::shift && call.places % call.group.size() == 0);
}

// The weight still counts in a sum.
void run_alone(const Call& call, int self) {
  if (!call.adds() || call.reduction != Reduction::sum) return;
  double factor = call.weights.empty() ? 1 : call.weights[static_cast<std::size_t>(self)];
  if (call.operation == Operation::shift) factor *= 2;  // with oneself
  if (factor != 1) scale_in_place(call.data.data, factor, call.data.count, call.data.dtype);
}

}  // namespace

void Collectives::State::run(const Call& call, const CollectiveOptions& options) {
  if (!call.group.contains(engine.rank()))
    usage_error("{}: rank {} is no member of {}", name_of(call.operation), engine.rank(),
                print(call.group));
  validate(call);
  if (is_alone(call)) return run_alone(call, call.group.index_of(engine.rank()));
  if (call.algorithm == Algorithm::automatic && host.covers(call.group))
    return host.run(call, after(options.timeout));
  messages.run(call, after(options.timeout));
}

Collectives::Collectives(Engine& engine) : state_(std::make_unique<State>(engine)) {}
Collectives::~Collectives() = default;

void Collectives::all_reduce(const Group& group, Elements data, const CollectiveOptions& options) {
  state_->run(make_call(Operation::all_reduce, group, data, options), options);
}

void Collectives::reduce_scatter(const Group& group, Elements data,
                                 const CollectiveOptions& options) {
  state_->run(make_call(Operation::reduce_scatter, group, data, options), options);
}

void Collectives::all_gather(const Group& group, Elements data, const CollectiveOptions& options) {
  state_->run(make_call(Operation::all_gather, group, data, options), options);
}

void Collectives::broadcast(const Group& group, Rank root, Elements data,
                            const CollectiveOptions& options) {
  Call call = make_call(Operation::broadcast, group, data, options);
  call.root = group.index_of(root);
  state_->run(call, options);
}

void Collectives::shift(const Group& group, int places, Elements data,
                        const CollectiveOptions& options) {
  Call call = make_call(Operation::shift, group, data, options);
  call.places = places;
  state_->run(call, options);
}

void Collectives::barrier(const Group& group, const CollectiveOptions& options) {
  state_->run(make_call(Operation::barrier, group, {}, options), options);
}

}  // namespace riffle
