// The exchanges of all workers, on matrices with a row for each: what a program says, carried out
// at the points that src/schedule gives it. Workers pass each point together; nothing that is mixed
// depends on clocks, so this is what they hold however far they run ahead of each other.
#pragma once

#include <deque>

#include "converge/flight.h"

namespace riffle::convergence {

// What travels; all have the same columns.
struct Values {
  Matrix* gradients;
  Matrix* weights;
  std::vector<Matrix*> state;
};

class Mixer {
 public:
  // `buckets`: the columns of each. `ranks` are the rows, in this order. `outer`: some program has
  // an outer optimizer; it begins with the weights as they are now.
  Mixer(std::vector<Columns> buckets, Group ranks, Values values, bool outer);

  // Gradients travel as these factors from now on; without, all of them travel whole.
  void set_factors(std::vector<PlacedMatrix> matrices);

  // The exchanges of a step; UsageError for what no worker can run.
  void begin(Step step, const Program& program);
  // All workers reach the point: what is due is merged, then what starts is taken.
  void pass(Step step, schedule::Point point);
  // The update of the bucket waits for the forward of the next step.
  [[nodiscard]] bool postpones(std::size_t bucket) const { return postpones_[bucket] != 0; }
  // Merges what is still under way, as a session does when it ends.
  void finish();

 private:
  [[nodiscard]] std::vector<Matrix*> matrices(Payload payload) const;
  void merge(Flight& flight);

  std::vector<Columns> buckets_;
  Group ranks_;
  Values values_;
  std::vector<char> postpones_;
  std::deque<Flight> flights_;  // in order of issue
  std::vector<Outer> outer_;    // at most one
  LowRankGradients low_rank_;
};

}  // namespace riffle::convergence
