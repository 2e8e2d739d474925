// The readers of programs that need no workers: verify, simulate, plan.
#include <fmt/format.h>
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "bindings.h"
#include "riffle/automatic.h"
#include "riffle/verify.h"
#include "strategies/example.h"

namespace py = pybind11;
using namespace py::literals;

namespace riffle::python {
namespace {

// A strategy in Python is called back under the lock, which these give away meanwhile.
using Unlocked = py::call_guard<py::gil_scoped_release>;

void bind_verify(py::module_& module) {
  py::class_<Verification>(module, "Verification", "What was proved of a strategy, or refuted.")
      .def_readonly("strategy", &Verification::strategy)
      .def_readonly("workers", &Verification::workers)
      .def_property_readonly("ok", &Verification::ok)
      .def_readonly("partition", &Verification::partition)
      .def_readonly("deadlock_free", &Verification::deadlock_free)
      .def_readonly("mean_preserved", &Verification::mean_preserved)
      .def_readonly("period", &Verification::period)
      .def_readonly("mixing_rate", &Verification::mixing_rate)
      .def_readonly("steps_to_consensus", &Verification::steps_to_consensus)
      .def_property_readonly("problems",
                             [](const Verification& self) {
                               std::vector<std::string> lines;
                               for (const Problem& problem : self.problems)
                                 lines.push_back(print(problem));
                               return lines;
                             })
      .def("to_json", [](const Verification& self) { return to_json(self); });
  module.def("verify", py::overload_cast<const NamedStrategy&, const World&, const Trace&>(&verify),
             "strategy"_a, "world"_a, "trace"_a, Unlocked());
  module.def("example_racks", &example_racks, "workers"_a);
  module.def("example_trace", &example_trace);
}

void bind_simulate(py::module_& module) {
  py::class_<Simulation>(module, "Simulation", "What a simulation found; times in seconds.")
      .def_readonly("strategy", &Simulation::strategy)
      .def_readonly("workers", &Simulation::workers)
      .def_property_readonly("iteration_seconds",
                             [](const Simulation& self) { return self.iteration.count(); })
      .def_property_readonly("compute_seconds",
                             [](const Simulation& self) { return self.compute.count(); })
      .def_property_readonly(
          "exposed_communication_seconds",
          [](const Simulation& self) { return self.exposed_communication.count(); })
      .def_readonly("speedup", &Simulation::speedup)
      .def_readonly("efficiency", &Simulation::efficiency)
      .def_readonly("bytes_per_worker", &Simulation::bytes_per_worker)
      .def_readonly("messages_per_worker", &Simulation::messages_per_worker)
      .def("to_json", [](const Simulation& self) { return to_json(self); });
  module.def(
      "simulate",
      [](const Trace& trace, const Cluster& cluster, const NamedStrategy& strategy, int steps,
         std::uint64_t seed) {
        return simulate(trace, cluster, strategy, {.seed = seed, .steps = steps});
      },
      "trace"_a, "cluster"_a, "strategy"_a, "steps"_a = 0, "seed"_a = 0, Unlocked());
}

void bind_plan(py::module_& module) {
  py::class_<Candidate>(module, "Candidate", "A strategy the planner looked at.")
      .def_readonly("spec", &Candidate::spec)
      .def_readonly("simulation", &Candidate::simulation)
      .def_readonly("effective_step", &Candidate::effective_step)
      .def_property_readonly("seconds_per_effective_step",
                             [](const Candidate& self) { return self.per_effective_step.count(); })
      .def_readonly("exact", &Candidate::exact)
      .def_readonly("reason", &Candidate::reason)
      .def_property_readonly("measured_seconds",
                             [](const Candidate& self) -> std::optional<double> {
                               if (!self.measured) return {};
                               return self.measured->count();
                             });
  py::class_<Plan>(module, "Plan", "Strategies ranked, the best first.")
      .def_readonly("model", &Plan::model)
      .def_readonly("cluster", &Plan::cluster)
      .def_property_readonly("limit", [](const Plan& self) { return print(self.limit); })
      .def_readonly("candidates", &Plan::candidates)
      .def_readonly("trace", &Plan::trace)
      .def_readonly("network", &Plan::network)
      .def("to_json", [](const Plan& self) { return to_json(self); })
      .def_static(
          "from_json", [](const std::string& text) { return plan_from_json(text, "plan"); },
          "text"_a)
      .def("__repr__", [](const Plan& self) {
        std::string text = fmt::format("<plan for {} on {}", self.model, self.cluster);
        int place = 0;
        for (const Candidate& each : self.candidates)
          text += fmt::format(
              "\n  {:2}. {}  {} per effective step{}{}", ++place, each.spec,
              print(each.per_effective_step), each.exact ? ", exact" : "",
              each.measured ? fmt::format(", measured {} a step", print(*each.measured)) : "");
        return text + ">";
      });
  module.def("load_plan", &load_plan, "file"_a);
  py::class_<ChosenStrategy>(module, "ChosenStrategy", "A strategy, or one that `auto` plans.")
      .def_readonly("strategy", &ChosenStrategy::strategy)
      .def(py::init([](const NamedStrategy& strategy) { return ChosenStrategy{strategy}; }),
           "strategy"_a);
  py::implicitly_convertible<NamedStrategy, ChosenStrategy>();
  module.def("choose_strategy", &choose_strategy, "spec"_a, "table"_a);
  module.def("candidate_specs", &candidate_specs, "table"_a);
  module.def(
      "plan",
      [](const Trace& trace, const Cluster& cluster, const StrategyTable& table,
         const std::vector<std::string>& specs,
         std::uint64_t seed) { return make_plan(trace, cluster, table, specs, {.seed = seed}); },
      "trace"_a, "cluster"_a, "table"_a, "specs"_a, "seed"_a = 0, Unlocked());
}

}  // namespace

void bind_analysis(py::module_& module) {
  bind_verify(module);
  bind_simulate(module);
  bind_plan(module);
}

}  // namespace riffle::python
