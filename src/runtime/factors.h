// The factors of gradients that travel as such (program.h, LowRank), by bucket: P with what travels
// whole beside it, and Q, which is kept from step to step.
#pragma once

#include "runtime/flight.h"
#include "runtime/layout.h"

namespace riffle::runtime {

class GradientFactors {
 public:
  GradientFactors() = default;
  GradientFactors(Memory& memory, const ModelSpec& model, const BucketPlan& buckets, int rank);

  // Q of every matrix as it is first: as the model has it (TensorSpec::first_q), or drawn.
  void start(Memory& memory, const ModelSpec& model) const;
  // Takes Q from those of other buckets, of the same model and rank.
  void take_over(Memory& memory, const GradientFactors& old) const;
  // Says what travels in the flight: of the gradient of its bucket, which lies in `gradient` as
  // `layout` says, and what was lost of it before in `lost`.
  void prepare(Flight& flight, const Layout& layout, const Flat& gradient, const Flat& lost) const;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const std::vector<Flat>& right() const { return right_; }

 private:
  struct Parameter {
    MatrixShape matrix{};
    int rank = 0;   // of its factors; 0: it travels whole
    Place left{};   // P, in left_
    Place right{};  // Q, in right_
    Place rest{};   // elements beyond the matrix, in left_
  };
  [[nodiscard]] Factored factored(const Parameter& of, TensorView gradient, TensorView lost) const;

  int rank_ = 0;
  std::vector<Parameter> parameters_;
  std::vector<Flat> left_;
  std::vector<Flat> right_;
};

// UsageError where the gradients of this model cannot have factors of this rank, or do not fit the
// first Q that were given. 0: they travel whole.
void check_factors(const ModelSpec& model, int rank);

}  // namespace riffle::runtime
