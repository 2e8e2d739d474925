// A flight with what it carries: one exchange of one step on this rank, from its plan to its merge.
#pragma once

#include <atomic>
#include <memory>

#include "runtime/flat.h"
#include "schedule/machine.h"

namespace riffle::runtime {

struct Rounded {
  TensorView lost{};  // of gradients, from step to step; of weights, of this flight; may be none
  TensorView reference{};  // of weights
  bool moves = false;      // the reference moves to what was agreed on
  std::size_t exact = 0;   // elements at the end that are not rounded
};

struct Flight : schedule::Flight {
  enum class Stage {
    planned,  // its start has not been reached
    started,  // what travels is complete: it may go
    done,
  };

  Flight() = default;
  explicit Flight(schedule::Flight planned) : schedule::Flight(std::move(planned)) {}

  Bytes sent{};                                    // by this rank, as the cost model counts
  std::vector<std::shared_ptr<Flight>> awaited{};  // those of `after`
  std::atomic<Stage> stage = Stage::planned;

  Parts parts{};                   // of what travels
  std::vector<TensorView> data{};  // what travels: the bucket's memory, or `travelling`
  Flat travelling{};               // unless in place
  Flat own{};                      // the snapshot, for `correct`
  // Where what travels is rounded (program.h, Wire), part by part; empty where nothing is.
  std::vector<Rounded> rounded{};
  Flat lost{};  // of weights; an outer step needs it when it is merged
  // Of what is served: the values as the owners last gave them, part by part.
  std::vector<TensorView> answered{};
};
using FlightPtr = std::shared_ptr<Flight>;

// A bucket's payload that is served (Collective::serve), with what its owners begin with, part by
// part; the same on all ranks.
struct Served {
  Exchange exchange;
  std::vector<TensorView> first;
};

}  // namespace riffle::runtime
