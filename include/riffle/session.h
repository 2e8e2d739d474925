// A session trains: it runs a strategy's programs on real memory, step by step. It knows nothing of
// any framework; an adapter tells it which points of a step have been reached, and gives it memory.
//
// One step, as an adapter calls it (t counts from 0):
//
//   wait_before_forward(b)
//       before the layers of bucket b are used in forward. Waits for what is due there and merges
//       it. True: an update was postponed to now; make it from gradient(), then call stepped(b).
//   mark_gradient_ready(p)
//       the gradient of parameter p is complete; from any thread. Gives the bucket that it
//       completes: an adapter that updates bucket by bucket does so now.
//   backward_done()
//       all gradients are there; parameters that were not marked were not used.
//   before_step(b)
//       waits for what is due before the update of bucket b and merges it. False: the update is
//       postponed to wait_before_forward(b).
//   stepped(b)
//       the optimizer has updated bucket b.
//   end_step()
//       the step is over; t counts on. Buckets that were not reported are passed through their
//       points in order, so an adapter may leave out what it does not need: mark_gradient_ready and
//       end_step alone are a step without an update.
//
// The result does not depend on how early these calls come: calling before_step for all buckets,
// updating everything and then calling stepped for all gives the same weights as stepping bucket by
// bucket under backward, only later.
//
// Memory. Where a program exchanges gradients (keeps_gradients()), gradients must live in
// gradient(p); where it exchanges weights (keeps_weights()), parameters and float buffers must live
// in weights(p) and buffer(i). They are engine memory that belongs to the session: copy out what
// you need before it ends. The layout is fixed until relayout() returns true.
//
// Threads. mark_gradient_ready() may come from any thread, also several at once; all other calls
// come from one thread at a time. Exchanges run on threads of the session, one per lane, in program
// order.
//
// Errors. What fails in the background is kept and thrown by the next call that waits, at the
// latest by end_step(): a CommError that names rank, group, bucket and step. After that the session
// is broken: every call that would wait throws the same again; the engine goes on. All waits end:
// when any rank of the world fails, and at SessionOptions::timeout.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "riffle/automatic.h"
#include "riffle/collective.h"
#include "riffle/launch_environment.h"
#include "riffle/timeline.h"

namespace riffle {

namespace runtime {
class Exchanger;
}

// A trained tensor, or a float buffer of the model (BatchNorm's statistics).
struct TensorSpec {
  std::string name;
  std::int64_t elements = 0;
  DType dtype = DType::f32;
  // Where its values are now, dense. Must stay valid while the session lives, unless the session
  // keeps the weights itself: then they are copied from here once, at the start.
  std::byte* data = nullptr;
  // As the framework has it, {64, 3, 7, 7}; empty: a vector. Gradients of matrices may travel as
  // factors (program.h, LowRank).
  std::vector<std::int64_t> shape = {};
  // Q of its first factors, a row of `rank` values for each column of the matrix, to compare with
  // another program; empty: drawn.
  std::vector<double> first_q = {};
};

// Trained tensors in the order forward uses them (backward completes them from the last to the
// first), frozen ones left out; and float buffers, which are averaged wherever weights are.
struct ModelSpec {
  std::vector<TensorSpec> parameters;
  std::vector<TensorSpec> buffers = {};
  std::string name = "session";  // for traces
};

// What may happen under backward and in the next forward that is right only where nobody changes
// gradients between backward and the update: updating a bucket as soon as its gradient is there,
// and leaving an update to the next forward.
enum class OverlapMode {
  full,     // the caller leaves gradients alone
  watched,  // the caller tells by begin_update() whether they were; the first steps do without
  none,
};

struct SessionOptions {
  // What strategies plan for. Default: flat where all ranks are on one host, else a rack per host,
  // as measured at the start (measure_network). Rank 0's decides.
  std::optional<Cluster> cluster = {};
  bool measure_network = true;
  // Where the cluster is measured, on several hosts, and buckets or groups follow the network (or
  // with `automatic`, unless Automatic::replan is false): exchanges are watched, and when links or
  // hosts have become slow or fast the network is measured again, a part at a time between steps,
  // and all ranks change to what is planned on it at the same step. Rank 0's decides.
  bool sense = true;
  // After so many steps at most, fewer where they take long, ranks tell each other what they have
  // seen; a change must show twice.
  int sense_window = 20;
  // Receives a line for what was sensed, on the lowest rank; stderr by default.
  std::function<void(const std::string&)> log = {};
  // Times of the layers, one per parameter in the same order. Default: modelled from the sizes,
  // measured in the first steps. Rank 0's decides.
  std::optional<Trace> trace = {};
  // After a few steps all ranks change to the strategy that is planned on what was measured; the
  // one given to the session is that of the steps before. See choose_strategy().
  std::optional<Automatic> automatic = {};
  // With `automatic`: what was planned before, instead of planning. Its network and, where it has a
  // layer per parameter, its times stand for `cluster` and `trace`. Rank 0's decides.
  std::optional<Plan> plan = {};
  // Measure more steps than the first few, and write the trace. Default: what the environment says
  // (RIFFLE_PROFILE, as `riffle profile` sets it).
  std::optional<ProfileRequest> profile = {};
  // Threads that compute on each rank. Where neither cluster nor trace is given and all ranks are
  // on one host, exchanges are planned to overlap only with cores that computing leaves free.
  int compute_threads = 1;
  // Parameters and buffers start as rank 0's. Not done when `resume` is given.
  bool broadcast = true;
  // What save() gave: strategy, step, buckets and everything in flight.
  std::span<const std::byte> resume = {};
  OverlapMode overlap = OverlapMode::full;
  // Record the timeline.
  bool record = false;
  // The longest that one wait may take.
  Seconds timeout{600};
  // The engine's collectives where there are some already; an engine has one such object, which
  // counts its calls. Must outlive the session. Default: the session makes its own.
  Collectives* collectives = nullptr;
};

struct SessionStats {
  Step steps = 0;
  Seconds step_time{};              // mean, from the end of a step to the end of the next
  Seconds exposed_communication{};  // mean per step: what the calls above waited
  Bytes bytes;                      // sent by this rank per step, as the cost model counts
  // sqrt(mean_i |x_i - xbar|^2) / |xbar| when it was last measured (consensus_distance()).
  std::optional<double> consensus_distance;
};

// What was seen and what was changed, from `step` on.
struct Sensed {
  Step step = 0;
  std::string what;
};

class Session {
 public:
  // Every rank makes one, with the same strategy and model. UsageError where ranks differ, for an
  // empty model, and for what a program asks that cannot be run. The engine must outlive it. Up to
  // five sessions (three that sense) may live on one engine at a time if they share its
  // Collectives; all ranks make and use them in the same order.
  Session(Engine& engine, NamedStrategy strategy, ModelSpec model, SessionOptions options = {});
  // The same over something else than an engine (SessionOptions::collectives has no meaning then).
  Session(std::unique_ptr<runtime::Exchanger> exchanger, NamedStrategy strategy, ModelSpec model,
          SessionOptions options = {});
  // Waits a moment for exchanges that peers are in, then gives them up.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] Rank rank() const;
  [[nodiscard]] const World& world() const;
  [[nodiscard]] const NamedStrategy& strategy() const;
  [[nodiscard]] Step step() const;  // the one under way

  // --- Layout.
  [[nodiscard]] const BucketPlan& buckets() const;
  // A layer per parameter, with the times that this rank has measured; before there are some, those
  // that buckets were made from. Trace::source says which.
  [[nodiscard]] Trace trace() const;
  [[nodiscard]] int bucket_of(int parameter) const;
  [[nodiscard]] std::vector<int> parameters_of(int bucket) const;  // ascending
  [[nodiscard]] bool keeps_gradients() const;
  [[nodiscard]] bool keeps_weights() const;
  // Some program exchanges the optimizer's state: set_state() it.
  [[nodiscard]] bool keeps_state() const;
  // Something starts before the update, or as soon as a bucket is updated: call
  // mark_gradient_ready().
  [[nodiscard]] bool needs_ready() const;
  // Something is due before forward: call wait_before_forward().
  [[nodiscard]] bool waits_in_forward() const;
  // data is nullptr where the session does not keep them.
  [[nodiscard]] TensorView gradient(int parameter) const;
  [[nodiscard]] TensorView weights(int parameter) const;
  [[nodiscard]] TensorView buffer(int index) const;

  // --- One step; see above.
  bool wait_before_forward(int bucket);
  std::optional<int> mark_gradient_ready(int parameter);
  void backward_done();
  bool before_step(int bucket);
  void stepped(int bucket);
  void end_step();

  // --- What computing takes, for trace() and plans. The session takes the times of gradients by
  // itself; where profiles(), the adapter tells the rest. On a device that runs behind the host
  // these calls, and mark_gradient_ready(), come when it has caught up.
  [[nodiscard]] bool profiles() const;
  void begin_forward();
  void forward_done(int parameter);  // of the layer that it belongs to
  void end_forward();
  void optimizer_took(Seconds time);  // again for each part of an update

  // --- The policy of overlap, for the step under way.
  // A bucket that mark_gradient_ready() completed should be updated at once: it is mixed under the
  // rest of backward.
  [[nodiscard]] bool updates_in_backward() const;
  // Updates are left to the next forward.
  [[nodiscard]] bool postpones() const;
  // OverlapMode::watched: gradients must not change between backward and update unnoticed; where
  // compares(), their values are to be looked at, later their versions will do.
  [[nodiscard]] bool watches() const;
  [[nodiscard]] bool compares() const;
  // The user's update begins; `changed` names a gradient that is not as backward left it, empty:
  // all are. Gives a line for a log, or nothing. UsageError where it was relied on already.
  [[nodiscard]] std::string begin_update(std::string_view changed);
  // The user clips through the adapter. UsageError where buckets were updated already.
  void begin_clipping();
  // The bucket has been updated in this step.
  [[nodiscard]] bool is_stepped(int bucket) const;

  // False while gradients are accumulated only: mark_gradient_ready() then starts nothing
  // (no_sync).
  void set_sync(bool sync);
  [[nodiscard]] bool sync() const;
  // After before_step (wait_before_forward, where postponed): whether any member used the parameter
  // in this step. One that nobody used has a zero gradient and should not be updated. Where
  // gradients are not exchanged: whether this rank did.
  [[nodiscard]] bool used(int parameter) const;
  // The optimizer's state of a parameter, float tensors only, where it is now: read at the points
  // at which the program exchanges it, and written at its merge. The same number of tensors and
  // sizes on all ranks; none is fine (nothing travels).
  void set_state(int parameter, std::vector<TensorView> tensors);
  // The 2-norm of the whole model's gradient as the update will see it: waits as before_step of all
  // buckets does. `scale_gradients` multiplies what gradient() holds, its parts that are
  // scattered over ranks included. For clipping; only where keeps_gradients().
  double gradient_norm();
  void scale_gradients(double factor);

  // --- The whole model. All ranks make these calls, at the same point between two steps.
  // wait_before_forward() of all buckets must have been called where updates are postponed.
  // One exact average of weights and buffers over the world, in place (TensorSpec::data where the
  // session does not keep them). What is delayed beyond the next forward is dropped. Strategies
  // that keep all workers equal leave the weights as they are.
  void finish();
  // The same average as a copy, training undisturbed: into[i] receives parameter i, after all
  // parameters the buffers; nullptr skips one.
  void averaged(std::span<std::byte* const> into);
  double consensus_distance();
  // Rank 0's bytes, for all.
  void broadcast(std::span<std::byte> bytes);
  // Mean of each value over the world.
  void average(std::span<double> values);
  // For a checkpoint, each rank its own: strategy, step and what is in flight, bit for bit. The
  // weights are the adapter's to save, after this call.
  [[nodiscard]] std::vector<std::byte> save();

  // --- Plans and buckets from measured times. Call after end_step; rank 0's times of the last
  // steps decide for all. True: gradient(), weights() and buffer() have moved (weights with their
  // values), so views must be made anew; with SessionOptions::automatic another strategy may run,
  // so what keeps_*, needs_ready() and waits_in_forward() say may have changed as well. After a few
  // steps, and whenever it is planned again.
  bool relayout();

  // --- What happened.
  [[nodiscard]] SessionStats stats() const;
  [[nodiscard]] Timeline timeline() const;  // empty unless recorded
  // When its second 0 was, by the steady clock; ranks of one machine share that clock.
  [[nodiscard]] Seconds timeline_begin() const;
  // With SessionOptions::automatic, once there is one: the ranking, and what a step of those that
  // ran took on this rank, beside what was predicted.
  [[nodiscard]] std::optional<Plan> plan() const;
  // The same on all ranks; empty where nothing is sensed or planned.
  [[nodiscard]] const std::vector<Sensed>& sensed() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace riffle
