// Workers whose weights are served (Collective::serve): nobody waits for another's step, so what
// they hold depends on their clocks. The model: a step takes a worker as long as the cluster says
// it is slow, messages take no time, and of those who end at one time chance says who comes first.
// Where all are as fast as each other every worker's gradient misses about half of what the others
// send while it computes; a slow one's misses all that the fast have sent since it began.
#pragma once

#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "converge/matrix.h"
#include "riffle/program.h"
#include "riffle/random.h"
#include "schedule/clocks.h"

namespace riffle::convergence {

class Serving {
 public:
  // Begins with the weights as they are; `slow` by worker, empty where nobody is.
  Serving(const Matrix& weights, int ahead, std::vector<double> slow);

  // Who ends its step next; it is its step number step_of().
  int next();
  [[nodiscard]] Step step_of(int worker) const { return clocks_.of(worker); }
  // That worker has updated its weights and sends what they have moved: those who are answered now
  // go on.
  void sent(int worker, Matrix& weights);
  // Everybody is answered and has what is held.
  void finish(Matrix& weights);

 private:
  void add(std::size_t worker, const Matrix& weights);
  void answer(std::size_t worker, Matrix& weights);

  schedule::Clocks clocks_;
  std::vector<double> slow_;
  Matrix answered_;  // what each was given last
  std::vector<double> held_;
  Random random_{2013};
  double now_ = 0;
  std::set<std::tuple<double, double, int>> ends_;  // when, by chance, of whom
};

// How far workers may be apart under a program all of whose exchanges are served to all `workers`;
// nothing where none is served. UsageError for one that serves among other things.
std::optional<int> served_ahead(const Program& program, int workers);

}  // namespace riffle::convergence
