// The problems, each in the file of its name.
#pragma once

#include "converge/data.h"
#include "riffle/converge.h"

namespace riffle::convergence {

// f_i(x) = 1/2 sum_k h_k (x_k - c_ik)^2, with noise on its gradients; the curvatures h_k are spread
// evenly on a logarithmic scale from 1/condition to 1, the centres c_i have mean one and differ as
// the workers' data do.
std::unique_ptr<LearningProblem> make_quadratic(const ProblemOptions& options, int workers);

// Layers of these sizes with ReLU between them and softmax cross-entropy at the end. Logistic
// regression is the one without a layer in between.
std::unique_ptr<LearningProblem> make_network(Data data, std::vector<std::size_t> sizes,
                                              const ProblemOptions& options, int workers);

}  // namespace riffle::convergence
