// A program: the exchanges of one step, for the whole world, in issue order. It is data: the
// runtime, both simulators and the verifier read the same one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "riffle/world.h"

namespace riffle {

// What travels. The bytes of a bucket's weights and gradients are the bucket's own, those of its
// buffers are Bucket::buffers; the optimizer's state counts as two values per weight (Adam's
// moments), see payload_bytes.
enum class Payload { gradient, weight, buffers, state };

enum class Collective { all_reduce, reduce_scatter, all_gather, shift, serve };

// The points of a step on one worker, for one bucket, in order: before_forward, bucket_ready,
// backward_done, before_step, the optimizer's update, after_step and bucket_stepped (one point),
// step_done.

// When an exchange may start, seen from one member. A snapshot of the payload is taken then.
enum class Start {
  bucket_ready,    // the bucket's gradient is complete, backward still runs
  bucket_stepped,  // the optimizer has updated this bucket, as soon as its gradient is merged
  backward_done,   // all gradients are complete
  step_done,       // the optimizer has updated everything it has not postponed
};

// At one point in time merges come before snapshots.
enum class DuePoint {
  before_step,     // just before the optimizer updates this bucket
  after_step,      // just after it updated this bucket
  before_forward,  // before the bucket's layers are used in forward
};

// An exchange of step t must be merged at `point` of step t + steps. before_forward needs steps >=
// 1: step t's own forward is over when its exchanges start. A gradient that is due later than its
// step's before_step postpones its bucket's update (dear).
struct Due {
  int steps = 0;
  DuePoint point = DuePoint::before_step;
  auto operator<=>(const Due&) const = default;
};
constexpr Due before_step(int steps = 0) {
  return {steps, DuePoint::before_step};
}
constexpr Due after_step(int steps = 0) {
  return {steps, DuePoint::after_step};
}
constexpr Due before_forward(int steps = 1) {
  return {steps, DuePoint::before_forward};
}

// How the result joins the local value. `mean` is weighted by the exchange's weights.
//
// An outer optimizer keeps the last agreed value a, which begins with the weights of the session's
// begin, and a momentum u, which begins at zero:
//   d = a - mean;  u <- momentum*u + d;
//   a <- a - learning_rate*(d + momentum*u) (Nesterov), or a - learning_rate*u (heavy ball);
//   x <- xi*x + (1-xi)*a; xi is the local share, 0 unless it is merged late.
// Where all outer steps of a bucket are all-reduces of one group, a and u are the same bit for bit
// on its members; where groups change, every worker's are its own.
struct Merge {
  enum class Kind {
    replace,  // x <- mean
    mix,      // x <- xi*x + (1-xi)*mean; xi is the local share
    correct,  // x <- x + scale*(mean of snapshots - own snapshot): the delta rule
    outer,    // x <- an outer step from the last agreed value along (it - mean)
  };
  Kind kind = Kind::replace;
  double xi = 0;
  double scale = 1;
  double learning_rate = 0;  // of the outer optimizer
  double momentum = 0;
  bool nesterov = true;  // else heavy ball
  bool operator==(const Merge&) const = default;
};
constexpr Merge replace() {
  return {};
}
constexpr Merge mix(double xi) {
  return {.kind = Merge::Kind::mix, .xi = xi};
}
constexpr Merge correct(double scale = 1) {
  return {.kind = Merge::Kind::correct, .scale = scale};
}
constexpr Merge outer(double learning_rate, double momentum, bool nesterov = true, double xi = 0) {
  return {.kind = Merge::Kind::outer,
          .xi = xi,
          .learning_rate = learning_rate,
          .momentum = momentum,
          .nesterov = nesterov};
}

// What gradients and weights, which are f32, are rounded to while they travel; buffers and the
// optimizer's state travel as they are. Sums are in f32, and each member knows what its own
// rounding has lost: over a group, sum(sent) = sum(weights)*mean + sum(lost), up to f32 rounding.
//
// Gradients: error feedback. A member sends its gradient and what it lost before,
//   mean, lost <- exchange(gradient + lost),
// so that nothing is lost for good; `lost` is part of a checkpoint.
// Weights: a member sends its difference to a reference r that all members share bit for bit, and
// keeps what it lost in its weights,
//   mean, lost <- exchange(x - r);  what is merged is r + mean + lost,
// so that the group's mean is kept, whatever is rounded: rounding never drifts. r is what an outer
// optimizer has last agreed on, where that is the same on all; else, where all exchanges of weights
// are of one group, the last r + mean of that group; else (groups change) what the weights were
// when the session began. An outer step starts from r + mean, and (1-xi)*lost is added to where it
// ends.
enum class Wire { f32, bf16, f16, int8 };

// serve: the members hold the bucket's value together, a slice each, and answer for theirs while
// they compute. A member sends each owner what its own value has moved since that owner's last
// answer, over the number of members; the owner adds it to the slice and answers with what it holds
// then, which replaces the member's. No member waits for a step of another but for answers, so what
// is merged depends on who is faster. With `ahead` at 0 or more an owner adds and answers only when
// no member has sent it fewer by more than that (schedule/clocks.h); what it answers at one time it
// adds in the order of ranks, so with 0 every result is the mean of all, the same in every run.
// Whatever the clocks, nothing is lost: what is held is the first value and all that was sent.
// (Statistics are not sent as differences, which could make a variance negative: of N members the
// owner takes 1/N of what each of k has sent, and keeps 1 - k/N of what it holds.)

// One collective of one bucket in one group.
//
// Exchanges of one bucket and payload that share a member chain in program order: the later one
// starts from the merged result of the earlier, on whatever lane that is, unless the earlier is due
// only after the later one is (a delayed exchange); then both run side by side, each from its own
// snapshot. Where the later one may start before the earlier is due, both must replace. A lane is
// serial on each worker, lanes run side by side; a slow exchange never holds up one on another lane
// that does not start from its result. Groups never wait for other groups. A group of one is a
// no-op.
//
// replace overwrites, and so does an outer step without a local share: nothing else may change the
// value between their snapshot and their merge (an update or another merge would be lost). mix,
// correct and an outer step with a local share may be merged late: correct keeps all that was
// learned meanwhile, the others the share xi of it. Between the snapshot of an outer step and its
// merge no other one of its bucket is merged: the value it was sent against is the one it moves.
struct Exchange {
  int bucket = 0;
  Payload payload = Payload::gradient;
  Group group{};
  std::vector<double> weights{};  // per member; empty means 1 for each
  std::vector<double> scales{};   // per member, for correct; empty means merge.scale for each. The
                                  // sum over members is kept when they are as the weights
  Collective collective = Collective::all_reduce;
  int shift = 0;   // of Collective::shift: send to the member that many places on, receive from the
                   // one that many places back, mean of the two
  int ahead = -1;  // of Collective::serve: how many exchanges of the bucket a member may have begun
                   // more than any other; below 0: no bound
  Algorithm algorithm = Algorithm::automatic;
  int lane = 0;
  Start start = Start::bucket_ready;
  Due due{};
  Merge merge{};
  Wire wire = Wire::f32;
  bool feedback = true;  // of the wire: what is lost is kept, as above; else it is dropped

  bool operator==(const Exchange&) const = default;
};

struct Program {
  std::vector<Exchange> exchanges;

  void add(Exchange exchange) { exchanges.push_back(std::move(exchange)); }
  bool operator==(const Program&) const = default;
};

std::string_view name_of(Payload payload);
std::string_view name_of(Collective collective);
std::string_view name_of(Start start);
std::string_view name_of(DuePoint point);
std::string_view name_of(Merge::Kind kind);
std::string_view name_of(Wire wire);
Wire parse_wire(std::string_view text, std::string_view what);

// "bucket 3 weight all_reduce {0 1}, bucket_stepped -> before_forward +1, correct 4, lane 1"
std::string print(const Exchange& exchange);
// An exchange a line.
std::string print(const Program& program);
std::string to_json(const Program& program);
Program program_from_json(std::string_view text, std::string_view source);

}  // namespace riffle
