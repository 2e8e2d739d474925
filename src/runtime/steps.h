// The steps of a session: carries out what the step machine says, on values and by an exchanger.
// mark_gradient_ready() may come from any thread, the rest from one thread at a time.
#pragma once

#include <map>
#include <mutex>

#include "runtime/arrivals.h"
#include "runtime/exchanger.h"
#include "runtime/profile.h"
#include "runtime/values.h"

namespace riffle::runtime {

class Steps {
 public:
  // `profile_steps`: how many are measured, see Profile.
  Steps(Exchanger& exchanger, Values& values, std::size_t parameters, int profile_steps);

  // A step begins. `forward`: its points before_forward are passed already.
  void begin(Step step, const Program& program, const CostModel& cost, bool forward = false);
  // A flight of an earlier step that has arrived: after a resume.
  void resume(FlightPtr flight);

  // The points, as session.h describes them; `parameter` is named `name` in an error.
  bool before_forward(int bucket);
  std::optional<int> mark_gradient_ready(int parameter, std::string_view name);
  void backward_done();
  bool before_step(int bucket);
  void stepped(int bucket);
  void step_done();

  void set_sync(bool sync);
  [[nodiscard]] bool sync() const;
  [[nodiscard]] bool used(int parameter) const;
  [[nodiscard]] const schedule::Machine& machine() const { return machine_; }
  [[nodiscard]] Profile& profile() { return profile_; }
  [[nodiscard]] const Profile& profile() const { return profile_; }

  // Calls visit(gradients, scattered): whole parts, or the own slice of what is scattered over the
  // ranks. Waits as before_step of all buckets does.
  void for_each_gradient(const std::function<void(TensorView, bool)>& visit);

  // Waits for all that is due before the next forward and merges it. UsageError where an update is
  // postponed to there.
  void settle();
  // Flights of earlier steps that are not merged yet; all have arrived.
  [[nodiscard]] std::vector<FlightPtr> delayed();
  void drop(const Flight& flight);
  // Merges all of them now. Corrections add up whenever they come.
  void merge_delayed();
  // Some flight of this step and lane has not arrived.
  [[nodiscard]] bool is_under_way(Step step, int lane) const;
  // Other buckets: whether updates are postponed is the same for all of them.
  void reset(bool postponed);

 private:
  std::optional<int> arrive(int parameter, std::string_view name);
  // Gives whether `update` was among them.
  bool carry_out(const schedule::Actions& actions);
  void carry_out(const schedule::Action& action);

  Exchanger& exchanger_;
  Values& values_;
  Profile profile_;
  mutable std::mutex mutex_;  // never held in a wait
  // Guarded by mutex_.
  schedule::Machine machine_;
  Arrivals arrivals_;
  std::map<schedule::FlightId, FlightPtr> flights_;
  bool sync_ = true;
};

}  // namespace riffle::runtime
