// Training whose compute is emulated: gradients of a trace's sizes travel through the real runtime
// while forward and backward take the trace's times.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lab/emulated_compute.h"
#include "riffle/session.h"

namespace riffle {

struct EmulatedOptions {
  bool record = false;  // keep the timeline
  bool sense = false;   // measure network and times, instead of planning for what is emulated
  std::uint64_t seed = 1;
  std::function<void(const std::string&)> log{};  // gets what the session says
};

class EmulatedTraining {
 public:
  // `whole` is the true model, of which the lab's share travels.
  EmulatedTraining(Engine& engine, const std::string& strategy, const Trace& whole,
                   const lab::LabEnvironment& environment, EmulatedOptions options = {});

  void run_step();
  [[nodiscard]] Session& session() { return *session_; }
  // Exposed communication of all steps so far.
  [[nodiscard]] Seconds exposed() const;
  // Of steps from `step` on, compute and exchanges, by the steady clock.
  [[nodiscard]] Timeline timeline_from(Step step) const;

 private:
  // Parameters of the trace's sizes.
  struct Model {
    explicit Model(const Trace& trace);
    std::vector<std::vector<float>> memory;
    ModelSpec spec;
  };
  void run_forward();
  void run_backward(std::vector<bool>& updated);
  // Lets the device take its time, and records it.
  template <typename Take>
  void take(EventKind kind, const std::string& name, Take take);

  Trace trace_;
  bool record_;
  Model model_;
  lab::EmulatedCompute compute_;
  std::unique_ptr<Session> session_;
  Timeline computed_;
};

}  // namespace riffle
