// Straight lines and piecewise lines through measured points.
#pragma once

#include <span>

#include "riffle/cost.h"
#include "riffle/import.h"

namespace riffle {

struct LinearFit {
  LinearCost cost;
  Seconds residual{};            // root mean square of (measured - fitted)
  double relative_residual = 0;  // root mean square of (measured - fitted) / measured
};

// Ordinary least squares. UsageError unless two points differ in size.
LinearFit fit_linear(std::span<const MeasuredPoint> points);

struct PiecewiseFit {
  Curve curve;
  Seconds residual{};
  double relative_residual = 0;
};

// The best curve of at most `most_pieces` lines, in relative error, by dynamic programming over the
// places to cut; a further piece must lower the error by enough to pay for its three numbers
// (Bayesian information criterion). Jumps are allowed: protocols switch.
PiecewiseFit fit_piecewise(std::span<const MeasuredPoint> points, int most_pieces = 6);

}  // namespace riffle
