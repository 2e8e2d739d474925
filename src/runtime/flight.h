// One exchange of one step on this rank, from its plan to its merge.
#pragma once

#include <atomic>
#include <memory>

#include "riffle/collective.h"
#include "riffle/program.h"
#include "runtime/lanes.h"
#include "runtime/layout.h"
#include "runtime/merge.h"

namespace riffle::runtime {

struct Flight {
  enum class Stage {
    planned,  // its start has not been reached
    started,  // what travels is complete: the lane may run it
    done,
  };

  Exchange exchange;
  Step step = 0;
  int index = 0;          // in the step's program
  bool in_place = false;  // travels in the bucket's own memory: nobody reads it until it is due
  Bytes sent;             // by this rank, as the cost model counts
  std::atomic<Stage> stage = Stage::planned;

  std::vector<Part> parts;     // of what travels
  std::vector<Elements> data;  // what travels: the bucket's memory, or `travelling`
  Flat travelling;             // unless in place
  Flat own;                    // the snapshot, for `correct`

  [[nodiscard]] bool due_at(Step now, DuePoint point) const {
    return step + exchange.due.steps == now && exchange.due.point == point;
  }
  [[nodiscard]] bool starts_at(Step now, Start start) const {
    return step == now && exchange.start == start;
  }
};
using FlightPtr = std::shared_ptr<Flight>;

// Whether nobody looks at the value between the start of this exchange and its due point, so that
// it may travel where it lies. UsageError for what cannot be run at all.
bool runs_in_place(const Exchange& exchange);

// Takes the snapshot: `memory` is the bucket's own.
void take_snapshot(Flight& flight, Engine& engine, FlatPool& pool, const std::vector<Part>& parts,
                   const std::vector<Elements>& memory);

// The collectives of a flight, on its lane's thread.
struct FlightRunner {
  Collectives& collectives;
  const Partition& racks;
  const Lanes& lanes;
  Seconds timeout;
  std::uint32_t epoch = 0;

  void run(Flight& flight) const;
};

// Joins the result with `memory`, the bucket's own; `self` is this rank's place in the group.
// `outer` is what the outer optimizer keeps of each part.
void merge_flight(Flight& flight, const std::vector<Elements>& memory, int self,
                  const std::vector<OuterState>& outer);

}  // namespace riffle::runtime
