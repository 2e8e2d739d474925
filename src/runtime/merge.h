// How the result of an exchange joins the local value; program.h has the rules.
#pragma once

#include "riffle/collective.h"
#include "riffle/program.h"

namespace riffle::runtime {

// What an outer optimizer keeps: the last agreed value and its momentum.
struct OuterState {
  Elements agreed;
  Elements momentum;
};

// x <- xi*x + (1-xi)*mean
void merge_mix(Elements x, Elements mean, double xi);
// x <- x + scale*(mean - snapshot)
void merge_correct(Elements x, Elements mean, Elements snapshot, double scale);
// The same for statistics, unscaled: a value that is positive everywhere stays so, as a variance
// must.
void merge_statistics(Elements x, Elements mean, Elements snapshot);
// Nesterov: d = agreed - mean; m <- momentum*m + d; agreed <- agreed - rate*(d + momentum*m);
// x <- agreed. `mean` may be x itself; it is used up.
void merge_outer(Elements x, Elements mean, const OuterState& state, const Merge& merge);

// x <- x - y
void subtract(Elements x, Elements y);
void copy(Elements to, Elements from);

}  // namespace riffle::runtime
