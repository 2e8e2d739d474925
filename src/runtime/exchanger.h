// What carries flights between ranks. Two kinds: our collectives on an engine
// (engine_exchanger.h), and a process group of torch, behind the Python package.
#pragma once

#include <functional>
#include <string>

#include "measure/check.h"
#include "riffle/cost.h"
#include "riffle/world.h"
#include "runtime/flight.h"
#include "runtime/recorder.h"
#include "schedule/schedule.h"

namespace riffle::runtime {

// All that an exchanger is told when a session has been agreed on.
struct Opening {
  std::uint64_t session = 0;  // a number of its own
  std::vector<Program> programs{};
  schedule::Needs needs{};
  const World& world;
  bool senses = false;
  Recorder& recorder;
};

// The calls for all come from one thread, between two steps, in the same order on all ranks. Those
// of flights come from one thread at a time.
class Exchanger {
 public:
  virtual ~Exchanger() = default;
  [[nodiscard]] virtual Rank rank() const = 0;
  [[nodiscard]] virtual const Group& ranks() const = 0;
  [[nodiscard]] virtual Memory& memory() = 0;

  // --- For all. The lowest rank's; of the host's memory, and of memory().
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  virtual void broadcast(TensorView values) = 0;
  virtual void all_reduce(std::span<double> values, Reduction reduction) = 0;
  virtual void average(TensorView values) = 0;

  // --- Flights. Planned in order of issue, which is the same on all ranks; a lane runs them in
  // that order, each when it has been started. What fails is kept and thrown by the next wait or
  // check.
  virtual void open(const Opening& opening) = 0;
  // The world or the programs have changed: these count from now on. Nothing is planned.
  virtual void change(const World& world, const std::vector<Program>& programs) = 0;
  virtual void plan(FlightPtr flight) = 0;
  virtual void start(Flight& flight) = 0;
  virtual void wait(Flight& flight) = 0;
  virtual void throw_if_failed() = 0;
  // Forgets what was planned and not started.
  virtual void forget_planned() = 0;
  // Throws where a rank has failed, or has ended before `step` was complete.
  virtual void look_around(std::string_view operation, Step step) = 0;
  // All ranks are here, after this number of steps; throws for one that is not.
  virtual void meet(Step steps) = 0;
  // What member `index` holds of `count` elements that are scattered over a group; what follows the
  // last member's is whole on all of them.
  [[nodiscard]] virtual Slice slice(std::size_t count, DType dtype, int members,
                                    int index) const = 0;
  // --- What is served, where can_serve(): from serve() to end(). Later every rank has what the
  // owners hold, in what serve() was given and in `values`, the members' own; called by all, when
  // what they have started is over.
  [[nodiscard]] virtual bool can_serve() const { return false; }
  virtual void serve(std::vector<Served> served);
  virtual void gather_served(const std::function<std::vector<TensorView>(const Exchange&)>& values);
  // --- The machines that the ranks run on.
  // How many hosts; 0: not known.
  [[nodiscard]] virtual int hosts() const = 0;
  // What to plan for: links as measured now, by all ranks together, or as such links usually are.
  [[nodiscard]] virtual Cluster cluster(bool measure) = 0;
  // How an exchange of this size runs here.
  [[nodiscard]] virtual Algorithm algorithm(const CostModel& cost, const Exchange& exchange,
                                            Bytes size) const = 0;
  // Whether an exchange runs by the algorithm that it names; else the library decides.
  [[nodiscard]] virtual bool has_algorithms() const { return true; }
  // Whether check() and spare_lane() are there.
  [[nodiscard]] virtual bool can_sense() const { return false; }
  // A measured network measured again, by all ranks together. Calls `look_around` from time to
  // time, which throws where nobody should wait any longer.
  [[nodiscard]] virtual Cluster check(const Cluster& known, const measure::CheckOptions& options,
                                      const std::function<void()>& look_around);
  // A lane for a session's own numbers.
  [[nodiscard]] virtual int spare_lane() const { return 0; }

  // The session is over: lets what was started come to its end for a moment, and tells the others.
  virtual void end(Step steps) noexcept = 0;
};

// Text of any length; the lowest rank's.
std::string broadcast(Exchanger& exchanger, std::string text);

}  // namespace riffle::runtime
