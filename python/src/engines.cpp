// Engines, and the environment a launcher has left.
#include <pybind11/stl.h>

#include "bindings.h"
#include "engine_handle.h"
#include "riffle/launch_environment.h"

namespace py = pybind11;
using namespace py::literals;

namespace riffle::python {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

std::shared_ptr<EngineHandle> shm_engine(const std::string& job, Rank rank, int size,
                                         double join_timeout,
                                         std::optional<double> failure_timeout) {
  ShmOptions options;
  options.job = job;
  options.rank = rank;
  options.size = size;
  options.join_timeout = Seconds(join_timeout);
  if (failure_timeout) options.failure_timeout = Seconds(*failure_timeout);
  return std::make_shared<EngineHandle>(make_shm_engine(options));
}

// A process alone needs no engine.
std::shared_ptr<EngineHandle> engine_of_this_rank(std::optional<double> failure_timeout) {
  const auto environment = read_launch_environment(process_environment());
  if (!environment || environment->size == 1) return nullptr;
  EngineOptions options;
  if (failure_timeout) options.failure_timeout = Seconds(*failure_timeout);
  return std::make_shared<EngineHandle>(launched_engine(options));
}

std::vector<std::shared_ptr<EngineHandle>> loopback_engines(int size) {
  const auto world = std::make_shared<LoopbackWorld>(size);
  std::vector<std::shared_ptr<EngineHandle>> engines;
  for (Rank rank = 0; rank < size; ++rank)
    engines.push_back(std::make_shared<EngineHandle>(world, rank));
  return engines;
}

}  // namespace

void bind_engines(py::module_& module) {
  py::class_<EngineHandle, std::shared_ptr<EngineHandle>>(module, "Engine",
                                                          "What moves bytes between ranks.")
      .def_property_readonly("name", [](EngineHandle& self) { return self.engine().name(); })
      .def_property_readonly("rank", [](EngineHandle& self) { return self.engine().rank(); })
      .def_property_readonly("size", [](EngineHandle& self) { return self.engine().size(); });
  module.def("shm_engine", &shm_engine, "job"_a, "rank"_a, "size"_a, "join_timeout"_a = 60.0,
             "failure_timeout"_a = py::none(),
             "Processes of one host over shared memory; returns when all have joined. A rank that "
             "shows no sign of life for failure_timeout seconds has failed; by default "
             "RIFFLE_FAILURE_TIMEOUT, else 10.",
             Unlocked());
  module.def("launched_engine", &engine_of_this_rank, "failure_timeout"_a = py::none(),
             "This rank's engine by the environment a launcher left; None for a process alone. "
             "failure_timeout as for shm_engine.",
             Unlocked());
  module.def("loopback_engines", &loopback_engines, "size"_a,
             "One engine per rank, for threads of this process.");

  py::class_<LaunchEnvironment>(module, "LaunchEnvironment", "As what a launcher started us.")
      .def_readonly("launcher", &LaunchEnvironment::launcher)
      .def_readonly("job", &LaunchEnvironment::job)
      .def_readonly("rank", &LaunchEnvironment::rank)
      .def_readonly("size", &LaunchEnvironment::size)
      .def_readonly("local_rank", &LaunchEnvironment::local_rank)
      .def_readonly("local_size", &LaunchEnvironment::local_size);
  module.def(
      "launch_environment", [] { return read_launch_environment(process_environment()); },
      "None when no launcher is recognized: this process is alone.");
  module.def(
      "profile_requested", [] { return read_profile_request(process_environment()).has_value(); },
      "`riffle profile` has started this process.");
}

}  // namespace riffle::python
