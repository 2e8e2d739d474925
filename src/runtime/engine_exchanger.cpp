#include "runtime/engine_exchanger.h"

#include "collective/choice.h"
#include "measure/network.h"
#include "riffle/error.h"
#include "runtime/rounding.h"

namespace riffle::runtime {

EngineExchanger::EngineExchanger(Engine& engine, Collectives* collectives, Seconds timeout)
    : engine_(engine),
      own_collectives_(collectives != nullptr ? nullptr : std::make_unique<Collectives>(engine)),
      control_{collectives != nullptr ? *collectives : *own_collectives_,
               Membership::all(engine.size()).ranks, timeout},
      memory_(engine) {}

EngineExchanger::~EngineExchanger() = default;

void EngineExchanger::broadcast(std::span<std::byte> bytes) {
  control_.broadcast(bytes);
}

void EngineExchanger::broadcast(TensorView values) {
  control_.collectives.broadcast(control_.ranks, control_.ranks.ranks().front(), values,
                                 control_.options());
}

void EngineExchanger::all_reduce(std::span<double> values, Reduction reduction) {
  control_.all_reduce(values, reduction);
}

void EngineExchanger::average(TensorView values) {
  control_.collectives.all_reduce(control_.ranks, values, control_.options());
}

// ---- flights

void EngineExchanger::open(const Opening& opening) {
  know(opening.world);
  session_ = opening.session;
  lanes_.emplace(control_, opening.needs.lanes, opening.senses);
  monitor_.emplace(engine_, control_.ranks, opening.session);
  dispatcher_.emplace(
      engine_, [this](Flight& flight) { run(flight); }, control_.timeout, *monitor_,
      opening.recorder);
}

void EngineExchanger::change(const World& world, const std::vector<Program>& /*programs*/) {
  know(world);
}

void EngineExchanger::know(const World& world) {
  racks_ = world.racks();
  piece_ = world.cluster.piece;
}

void EngineExchanger::run(Flight& flight) {
  const Exchange& exchange = flight.exchange;
  if (exchange.collective == Collective::serve) return service_.value().exchange(flight);
  CollectiveOptions options{.lane = lanes_->at(exchange.lane),
                            .weights = exchange.weights,
                            .algorithm = exchange.algorithm,
                            .piece = piece_,
                            .timeout = control_.timeout,
                            .background = true,
                            .epoch = control_.epoch,
                            .bucket = exchange.bucket,
                            .step = flight.id.step};
  if (exchange.algorithm == Algorithm::two_level) options.racks = racks_;
  for (std::size_t i = 0; i < flight.data.size(); ++i) {
    if (flight.rounded.empty())
      run(exchange, flight.data[i], options);
    else
      run_rounded(exchange, flight.data[i], flight.rounded[i], [&](const Rounding& rounding) {
        options.rounding = rounding;
        run(exchange, flight.data[i], options);
      });
  }
}

void EngineExchanger::run(const Exchange& exchange, const TensorView& data,
                          const CollectiveOptions& options) const {
  switch (exchange.collective) {
    case Collective::all_reduce:
      return control_.collectives.all_reduce(exchange.group, data, options);
    case Collective::reduce_scatter:
      return control_.collectives.reduce_scatter(exchange.group, data, options);
    case Collective::all_gather:
      return control_.collectives.all_gather(exchange.group, data, options);
    case Collective::shift:
      return control_.collectives.shift(exchange.group, exchange.shift, data, options);
    case Collective::serve:
      break;
  }
  throw InternalError("what is served is no collective");
}

void EngineExchanger::plan(FlightPtr flight) {
  dispatcher_->plan(std::move(flight));
}
void EngineExchanger::start(Flight& flight) {
  dispatcher_->start(flight);
}
void EngineExchanger::wait(Flight& flight) {
  dispatcher_->wait(flight);
}
void EngineExchanger::throw_if_failed() {
  dispatcher_->throw_if_failed();
}
void EngineExchanger::forget_planned() {
  dispatcher_->forget_planned();
}
void EngineExchanger::look_around(std::string_view operation, Step step) {
  monitor_->check({.group = &control_.ranks, .operation = operation, .step = step});
}
void EngineExchanger::meet(Step steps) {
  monitor_->meet(steps, control_.timeout);
}

void EngineExchanger::serve(std::vector<Served> served) {
  service_.emplace(engine_, std::move(served), session_, control_.timeout,
                   [this](std::exception_ptr error) { dispatcher_->fail(std::move(error)); });
}

// Behind the barrier all that was sent has been added.
void EngineExchanger::gather_served(
    const std::function<std::vector<TensorView>(const Exchange&)>& values) {
  control_.collectives.barrier(control_.ranks, control_.options());
  service_.value().visit([&](const Service::Part& part) {
    const Group& group = part.exchange.group;
    const TensorView whole = values(part.exchange)[static_cast<std::size_t>(part.part)];
    const Slice own = slice(whole.count, whole.dtype, group.size(), group.index_of(rank()));
    if (own.count > 0) memory_.copy(part_of(whole, own.begin, own.count), part.held);
    control_.collectives.all_gather(group, whole, control_.options());
    memory_.copy(part.first, whole);
  });
}

// Who serves stays until all have ended: others may still want their answers.
void EngineExchanger::end(Step steps) noexcept {
  if (!dispatcher_) return;
  dispatcher_->forget_planned();
  dispatcher_->drain();
  const Ending ending = dispatcher_->ending(steps);
  const Seconds patience = service_ ? control_.timeout : Seconds(1);
  monitor_->end(ending, ending.culprit < 0 ? patience : Seconds(0.2));
}

// ---- the machines

int EngineExchanger::hosts() const {
  return static_cast<int>(measure::by_host(engine_).size());
}

Cluster EngineExchanger::cluster(bool measured) {
  if (!measured) return measure::assumed_cluster(engine_);
  const measure::Place place(engine_, control_);
  return measure::measure_network(place, measure::quick_look({})).fit.cluster;
}

Algorithm EngineExchanger::algorithm(const CostModel& cost, const Exchange& exchange,
                                     Bytes size) const {
  return collective::algorithm_for(engine_, cost, exchange, size);
}

bool EngineExchanger::can_sense() const {
  return hosts() > 1;
}

Cluster EngineExchanger::check(const Cluster& known, const measure::CheckOptions& options,
                               const std::function<void()>& look_around) {
  return measure::check_network(measure::Place(engine_, control_, look_around), known, options);
}

}  // namespace riffle::runtime
