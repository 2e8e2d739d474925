// One exchange under way, and what it does to the rows of its members.
#pragma once

#include "converge/low_rank.h"
#include "riffle/program.h"
#include "schedule/points.h"

namespace riffle::convergence {

// The memory of an outer optimizer, a row for each worker.
struct Outer {
  Matrix agreed;
  Matrix momentum;
};

class Flight {
 public:
  // `rows` are those of the members; `bucket` its columns.
  Flight(const Exchange& exchange, Step step, std::vector<std::size_t> rows, Columns bucket);

  [[nodiscard]] const Exchange& exchange() const { return exchange_; }
  [[nodiscard]] Columns bucket() const { return bucket_; }
  [[nodiscard]] Members members() const { return {rows_, weights_}; }
  [[nodiscard]] schedule::Moment taken() const { return taken_; }
  [[nodiscard]] schedule::Moment due() const { return due_; }

  // What travels, as it is now. Nothing to do for one that travels in place: nobody changes the
  // values until it is merged.
  void take(const std::vector<Matrix*>& from);
  // Joins what arrived with the members' values. `outer` where the merge needs one.
  void merge(const std::vector<Matrix*>& into, Outer* outer);

 private:
  struct Snapshot {   // of one matrix
    Matrix received;  // a row for all members, or one for each
    Matrix own;       // a row for each member, where the merge needs them
  };
  [[nodiscard]] Columns owned(std::size_t member) const;
  [[nodiscard]] std::size_t received_rows() const;
  void receive(const Matrix& from, Columns block, Matrix& received) const;
  void join(std::size_t member, Columns block, double* x, const double* received, const double* own,
            Outer* outer) const;

  Exchange exchange_;
  std::vector<std::size_t> rows_;
  std::vector<double> weights_;  // of the members, that add up to one
  Columns bucket_;
  schedule::Moment taken_;
  schedule::Moment due_;
  bool in_place_;
  std::vector<Snapshot> snapshots_;
};

}  // namespace riffle::convergence
