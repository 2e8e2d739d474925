// A session at work: buckets with their memory, flights under way, and the points of the step that
// each bucket has passed.
#pragma once

#include <mutex>

#include "riffle/cost.h"
#include "riffle/session.h"
#include "runtime/agreement.h"
#include "runtime/dispatcher.h"
#include "runtime/lanes.h"
#include "runtime/layout.h"
#include "runtime/notices.h"
#include "runtime/recorder.h"
#include "runtime/sense.h"

namespace riffle::runtime {

// What the programs of a strategy exchange among more than one worker.
struct Needs {
  bool gradients = false;
  bool weights = false;
  bool state = false;
  bool outer = false;
  int lanes = 0;
};
Needs needs_of(const Strategy& strategy, const World& world, const BucketPlan& buckets);

// The points of a step that one bucket has passed.
struct Passed {
  int missing = 0;  // parameters that are not ready
  bool forward = false;
  bool ready = false;
  bool before_step = false;
  bool stepped = false;
};

struct OuterMemory {
  Flat agreed;
  Flat momentum;
  std::vector<OuterState> parts;
};

}  // namespace riffle::runtime

namespace riffle {

class Session::State {
 public:
  State(Engine& engine, NamedStrategy strategy, ModelSpec model, SessionOptions options);
  ~State();

  // The points, as session.h describes them. In step.cpp.
  bool needed(int bucket);
  std::optional<int> ready(int parameter);
  void backward_done();
  bool before_step(int bucket);
  void stepped(int bucket);
  void end_step();
  double gradient_norm();
  void scale_gradients(double factor);
  [[nodiscard]] bool used(int parameter) const;

  // In whole_model.cpp.
  void finish();
  void averaged(std::span<std::byte* const> into);
  double consensus_distance();

  // In checkpoint.cpp.
  std::vector<std::byte> save();
  void restore();

  // In relayout.cpp.
  bool relayout();

  // In sense.cpp: between two steps.
  void sense();

  [[nodiscard]] Elements gradient(int parameter) const;
  [[nodiscard]] Elements weights(int parameter) const;
  [[nodiscard]] Elements buffer(int index) const;
  [[nodiscard]] std::string describe() const;

  // --- What it is made of. The order is that of construction: what runs ends before what it uses.
  Engine& engine;
  NamedStrategy strategy;
  ModelSpec model;
  SessionOptions options;
  std::unique_ptr<Collectives> own_collectives;
  Collectives& collectives;
  runtime::Control control;
  runtime::Agreement agreed;
  Partition racks;
  std::optional<CostModel> cost;  // always there; made anew with the world
  runtime::Layout layout;
  runtime::Needs needs;
  runtime::Lanes lanes;
  std::vector<runtime::Flat> gradient_memory;  // by bucket; empty where not kept
  std::vector<runtime::Flat> weight_memory;
  std::vector<runtime::OuterMemory> outer;
  std::vector<std::vector<Elements>> optimizer_state;  // by parameter
  runtime::FlatPool pool;
  runtime::Recorder recorder;
  runtime::Notices notices;

  // Guards what follows but the dispatcher, which has a lock of its own; never held in a wait.
  mutable std::mutex mutex;
  Step step = 0;
  bool sync = true;
  bool backward_over = false;
  bool per_bucket = false;              // the program mixes buckets as they are stepped
  std::vector<runtime::Passed> passed;  // by bucket
  std::vector<char> postpones;          // by bucket: this step's program postpones its update
  std::vector<char> postponed;          // by bucket: the last step's update is still to be made
  std::vector<char> is_ready;           // by parameter
  std::vector<char> is_used;            // by parameter: on this rank, since the last update
  std::vector<std::vector<runtime::FlightPtr>> flights;  // by bucket, in program order
  std::vector<Clock::time_point> ready_at;               // by parameter, in this step
  std::vector<Seconds> backward_times;                   // by parameter, summed
  int measured_steps = 0;
  std::optional<runtime::Sensing> sensing;
  std::vector<Sensed> sensed;

  runtime::Dispatcher dispatcher;

 private:
  friend class Session;

  void allocate();
  void start_outer();
  void broadcast_model();
  void prepare_step();
  void reset_step();

  // Waits for flights of a bucket and merges them, in program order.
  void merge_due(int bucket, DuePoint point);
  void merge(runtime::Flight& flight);
  // Under the mutex.
  void start_flights(int bucket, Start start);
  void start_flight(runtime::Flight& flight);
  void reach_ready(int bucket);
  [[nodiscard]] bool goes_on(const runtime::Flight& flight) const;
  [[nodiscard]] bool is_due(int bucket, DuePoint point) const;
  void check_bucket(int bucket) const;
  void check_parameter(int parameter) const;

  [[nodiscard]] std::vector<runtime::Part> state_parts(int bucket) const;
  void gather_state(int bucket, const std::vector<Elements>& into) const;
  void scatter_state(int bucket, const std::vector<Elements>& from) const;
  [[nodiscard]] Elements value_of(std::size_t tensor) const;
  template <typename Visit>
  void for_each_gradient(const Visit& visit);
  // Calls visit(tensor, offset, average, own) for the parts of parameters and buffers from tensor
  // `first` on, as value_of counts them.
  template <typename Visit>
  void for_each_average(std::size_t first, const Visit& visit);
  [[nodiscard]] std::size_t first_to_average() const;
  // Merges what is due before the next forward. UsageError where updates are postponed.
  void settle();
  // Flights of earlier steps that are not merged yet, all of them done.
  [[nodiscard]] std::vector<runtime::FlightPtr> delayed();
  void note_backward_times();
  bool move_to(Trace trace, const BucketPlan& plan);

  [[nodiscard]] std::vector<double> own_numbers();
  void start_gathering();
  [[nodiscard]] std::vector<runtime::ExchangeTime> gathered_times(
      const std::vector<double>& numbers) const;
  void decide();
  void measure_again(const std::optional<runtime::Drift::Seen>& drift);
  [[nodiscard]] Step quiet_step() const;
  void change_world();
  void log(std::string what);
};

}  // namespace riffle
