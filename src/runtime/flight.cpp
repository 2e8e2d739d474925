#include "runtime/flight.h"

#include "riffle/error.h"

namespace riffle::runtime {
namespace {

bool is_half(const Exchange& exchange) {
  return exchange.collective == Collective::reduce_scatter ||
         exchange.collective == Collective::all_gather;
}

// Gradients are not looked at between backward and the update that uses them.
bool gradient_in_place(const Exchange& exchange) {
  if (exchange.merge.kind != Merge::Kind::replace) return false;
  return exchange.due.steps == 0 ||
         (exchange.due.steps == 1 && exchange.due.point == DuePoint::before_forward);
}

// Weights are not looked at between their update and the next forward.
bool weight_in_place(const Exchange& exchange) {
  const bool overwrites =
      exchange.merge.kind == Merge::Kind::replace || exchange.merge.kind == Merge::Kind::outer;
  return overwrites && exchange.due == before_forward(1) &&
         (exchange.start == Start::bucket_stepped || exchange.start == Start::step_done);
}

}  // namespace

bool runs_in_place(const Exchange& exchange) {
  const auto refuse = [&](std::string_view why) {
    usage_error("cannot run the exchange \"{}\": {}", print(exchange), why);
  };
  if (exchange.wire != Wire::f32) refuse("values travel in their own type; use wire=f32");
  if (exchange.lane > 14) refuse("there are lanes 0 to 14");
  if (exchange.payload == Payload::buffers) refuse("buffers travel with the weights");
  if (exchange.payload == Payload::state && exchange.merge.kind == Merge::Kind::outer)
    refuse("an outer optimizer is for weights");
  if (exchange.payload == Payload::gradient && exchange.merge.kind == Merge::Kind::outer)
    refuse("an outer optimizer is for weights");
  const bool in_place = exchange.payload == Payload::gradient ? gradient_in_place(exchange)
                        : exchange.payload == Payload::weight ? weight_in_place(exchange)
                                                              : false;
  if (is_half(exchange) && !in_place)
    refuse("half of an all_reduce must replace before the value is used");
  if (exchange.merge.kind == Merge::Kind::outer && !in_place)
    refuse("an outer step is due before the next forward");
  return in_place;
}

void take_snapshot(Flight& flight, Engine& engine, FlatPool& pool, const std::vector<Part>& parts,
                   const std::vector<Elements>& memory) {
  flight.parts = parts;
  if (flight.in_place) {
    flight.data = memory;
    return;
  }
  const auto copied = [&] {
    Flat flat = pool.take(engine, parts);
    for (std::size_t i = 0; i < parts.size(); ++i) copy(flat.parts()[i], memory[i]);
    return flat;
  };
  flight.travelling = copied();
  if (flight.exchange.merge.kind == Merge::Kind::correct) flight.own = copied();
  flight.data = flight.travelling.parts();
}

void FlightRunner::run(Flight& flight) const {
  const Exchange& exchange = flight.exchange;
  CollectiveOptions options{.lane = lanes.at(exchange.lane),
                            .weights = exchange.weights,
                            .algorithm = exchange.algorithm,
                            .timeout = timeout,
                            .background = true,
                            .epoch = epoch,
                            .bucket = exchange.bucket,
                            .step = flight.step};
  if (exchange.algorithm == Algorithm::two_level) options.racks = racks;
  for (const Elements& data : flight.data) {
    switch (exchange.collective) {
      case Collective::all_reduce:
        collectives.all_reduce(exchange.group, data, options);
        break;
      case Collective::reduce_scatter:
        collectives.reduce_scatter(exchange.group, data, options);
        break;
      case Collective::all_gather:
        collectives.all_gather(exchange.group, data, options);
        break;
      case Collective::shift:
        collectives.shift(exchange.group, exchange.shift, data, options);
        break;
    }
  }
}

void merge_flight(Flight& flight, const std::vector<Elements>& memory, int self,
                  const std::vector<OuterState>& outer) {
  const Exchange& exchange = flight.exchange;
  const double scale = exchange.scales.empty() ? exchange.merge.scale : exchange.scales.at(self);
  for (std::size_t i = 0; i < flight.data.size(); ++i) {
    const Elements x = memory.at(i);
    const Elements mean = flight.data[i];
    const bool statistics = flight.parts[i].statistics;
    switch (exchange.merge.kind) {
      case Merge::Kind::replace:
        if (!flight.in_place) copy(x, mean);
        break;
      case Merge::Kind::mix:
        merge_mix(x, mean, exchange.merge.xi);
        break;
      case Merge::Kind::correct:
        if (statistics)
          merge_statistics(x, mean, flight.own.parts()[i]);
        else
          merge_correct(x, mean, flight.own.parts()[i], scale);
        break;
      case Merge::Kind::outer:
        if (!statistics) merge_outer(x, mean, outer.at(i), exchange.merge);
        break;
    }
  }
}

}  // namespace riffle::runtime
