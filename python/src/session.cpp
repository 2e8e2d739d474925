// Session, function by function; riffle/session.h says what each does. Calls that may wait give
// Python's lock away meanwhile.
#include "riffle/session.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>

#include "bindings.h"
#include "engine_handle.h"
#include "python_exchanger.h"
#include "riffle/error.h"

namespace py = pybind11;
using namespace py::literals;

namespace riffle::python {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

// The engine goes after the session that uses it; there is none over a process group.
struct SessionHandle {
  SessionHandle(std::shared_ptr<EngineHandle> on, NamedStrategy strategy, ModelSpec model,
                const SessionOptions& options)
      : engine(std::move(on)),
        session(engine->engine(), std::move(strategy), std::move(model), options) {}
  SessionHandle(std::unique_ptr<runtime::Exchanger> by, NamedStrategy strategy, ModelSpec model,
                const SessionOptions& options)
      : session(std::move(by), std::move(strategy), std::move(model), options) {}
  std::shared_ptr<EngineHandle> engine;
  Session session;
};

// Memory of a session, as Python's buffer protocol shows it. Tensors made from it keep the session.
struct Memory {
  std::shared_ptr<SessionHandle> owner;
  TensorView view;
};

std::byte* address(std::uintptr_t pointer) {
  return reinterpret_cast<std::byte*>(pointer);
}

// What Python passes of a tensor: name, elements, dtype, address.
using PythonTensor = std::tuple<std::string, std::int64_t, std::string, std::uintptr_t>;

std::vector<TensorSpec> tensors(const std::vector<PythonTensor>& from) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, count, dtype, pointer] : from)
    specs.push_back({name, count, parse_dtype(dtype, name), address(pointer)});
  return specs;
}

// Of matrices: their shapes, and the first Q of their factors, by name.
void add_shapes(std::vector<TensorSpec>& parameters,
                const std::vector<std::vector<std::int64_t>>& shapes,
                const std::map<std::string, std::vector<double>>& first_q) {
  for (std::size_t i = 0; i < shapes.size(); ++i) parameters.at(i).shape = shapes[i];
  for (const auto& [name, values] : first_q) {
    const auto found = std::ranges::find(parameters, name, &TensorSpec::name);
    if (found == parameters.end()) usage_error("first_q: the model trains no {}", name);
    found->first_q = values;
  }
}

OverlapMode parse_overlap(const std::string& word) {
  if (word == "full") return OverlapMode::full;
  if (word == "watched") return OverlapMode::watched;
  if (word == "none") return OverlapMode::none;
  usage_error("overlap '{}' is not known; known: full watched none", word);
}

// `engine`: an Engine, or an object of riffle/_process_group.py.
std::shared_ptr<SessionHandle> make_session(
    const py::object& engine, const ChosenStrategy& chosen,
    const std::vector<PythonTensor>& parameters, const std::vector<PythonTensor>& buffers,
    const std::string& name, std::optional<Cluster> cluster, std::optional<Trace> trace,
    std::optional<Plan> plan, bool profile, bool measure_network, bool sense, int sense_window,
    bool broadcast, const std::optional<std::string>& resume, const std::string& overlap,
    bool record, double timeout, int compute_threads,
    const std::vector<std::vector<std::int64_t>>& shapes,
    const std::map<std::string, std::vector<double>>& first_q) {
  SessionOptions options;
  options.cluster = std::move(cluster);
  options.trace = std::move(trace);
  options.automatic = chosen.automatic;
  options.plan = std::move(plan);
  if (profile) options.profile = ProfileRequest{};
  options.measure_network = measure_network;
  options.sense = sense;
  options.sense_window = sense_window;
  options.broadcast = broadcast;
  if (resume) options.resume = std::as_bytes(std::span(*resume));
  options.record = record;
  options.timeout = Seconds(timeout);
  options.compute_threads = compute_threads;
  options.overlap = parse_overlap(overlap);
  ModelSpec model{.parameters = tensors(parameters), .buffers = tensors(buffers), .name = name};
  add_shapes(model.parameters, shapes, first_q);
  if (!py::isinstance<EngineHandle>(engine)) {
    auto exchanger = python_exchanger(engine);
    const py::gil_scoped_release unlocked;
    return std::make_shared<SessionHandle>(std::move(exchanger), chosen.strategy, model, options);
  }
  auto handle = engine.cast<std::shared_ptr<EngineHandle>>();
  options.collectives = &handle->collectives();
  const py::gil_scoped_release unlocked;
  return std::make_shared<SessionHandle>(std::move(handle), chosen.strategy, model, options);
}

void bind_memory(py::module_& module) {
  py::class_<Memory>(module, "Memory", py::buffer_protocol(), "Memory that a session keeps.")
      .def_buffer([](const Memory& self) {
        const auto bytes = static_cast<py::ssize_t>(
            self.view.count * static_cast<std::size_t>(size_of(self.view.dtype).count));
        return py::buffer_info(reinterpret_cast<std::uint8_t*>(self.view.data), bytes);
      })
      .def_property_readonly(
          "address",
          [](const Memory& self) { return reinterpret_cast<std::uintptr_t>(self.view.data); })
      .def("__len__", [](const Memory& self) { return self.view.count; })
      .def_property_readonly("dtype", [](const Memory& self) { return name_of(self.view.dtype); });
}

void bind_stats(py::module_& module) {
  py::class_<SessionStats>(module, "SessionStats", "Means per step, in seconds and bytes.")
      .def(py::init<>())
      .def_readonly("steps", &SessionStats::steps)
      .def_property_readonly("step_time",
                             [](const SessionStats& self) { return self.step_time.count(); })
      .def_property_readonly(
          "exposed_communication",
          [](const SessionStats& self) { return self.exposed_communication.count(); })
      .def_property_readonly("bytes", [](const SessionStats& self) { return self.bytes.count; })
      .def_readonly("consensus_distance", &SessionStats::consensus_distance)
      .def("__repr__", [](const SessionStats& self) {
        const std::string apart =
            self.consensus_distance
                ? fmt::format(", consensus distance {:.3g}", *self.consensus_distance)
                : "";
        return fmt::format("<{} steps of {}, {} of it exposed communication, {} sent per step{}>",
                           self.steps, print(self.step_time), print(self.exposed_communication),
                           print(self.bytes), apart);
      });
}

using Handle = std::shared_ptr<SessionHandle>;
using Class = py::class_<SessionHandle, Handle>;

// A function of Session as one of its handle.
template <typename R, typename... A>
auto call(R (Session::*function)(A...)) {
  return [function](SessionHandle& self, A... arguments) -> R {
    return (self.session.*function)(arguments...);
  };
}
template <typename R, typename... A>
auto call(R (Session::*function)(A...) const) {
  return [function](const SessionHandle& self, A... arguments) -> R {
    return (self.session.*function)(arguments...);
  };
}
auto memory(TensorView (Session::*function)(int) const) {
  return [function](const Handle& self, int index) -> std::optional<Memory> {
    const TensorView view = (self->session.*function)(index);
    if (view.data == nullptr) return {};
    return Memory{self, view};
  };
}

void bind_layout(Class& session) {
  session.def_property_readonly("rank", call(&Session::rank))
      .def_property_readonly("world", call(&Session::world))
      .def_property_readonly("strategy", call(&Session::strategy))
      .def_property_readonly("step", call(&Session::step))
      .def_property_readonly("buckets", call(&Session::buckets))
      .def("trace", call(&Session::trace))
      .def("bucket_of", call(&Session::bucket_of), "parameter"_a)
      .def("parameters_of", call(&Session::parameters_of), "bucket"_a)
      .def_property_readonly("keeps_gradients", call(&Session::keeps_gradients))
      .def_property_readonly("keeps_weights", call(&Session::keeps_weights))
      .def_property_readonly("keeps_state", call(&Session::keeps_state))
      .def_property_readonly("needs_ready", call(&Session::needs_ready))
      .def_property_readonly("waits_in_forward", call(&Session::waits_in_forward))
      .def("gradient", memory(&Session::gradient), "parameter"_a)
      .def("weights", memory(&Session::weights), "parameter"_a)
      .def("buffer", memory(&Session::buffer), "index"_a);
}

void bind_step(Class& session) {
  session.def("wait_before_forward", call(&Session::wait_before_forward), "bucket"_a, Unlocked())
      .def("mark_gradient_ready", call(&Session::mark_gradient_ready), "parameter"_a, Unlocked())
      .def("backward_done", call(&Session::backward_done), Unlocked())
      .def("before_step", call(&Session::before_step), "bucket"_a, Unlocked())
      .def("stepped", call(&Session::stepped), "bucket"_a, Unlocked())
      .def("end_step", call(&Session::end_step), Unlocked())
      .def_property_readonly("profiles", call(&Session::profiles))
      .def("begin_forward", call(&Session::begin_forward))
      .def("forward_done", call(&Session::forward_done), "parameter"_a)
      .def("end_forward", call(&Session::end_forward))
      .def(
          "optimizer_took",
          [](SessionHandle& self, double seconds) {
            self.session.optimizer_took(Seconds(seconds));
          },
          "seconds"_a)
      .def_property_readonly("updates_in_backward", call(&Session::updates_in_backward))
      .def_property_readonly("postpones", call(&Session::postpones))
      .def_property_readonly("watches", call(&Session::watches))
      .def_property_readonly("compares", call(&Session::compares))
      .def("begin_update", call(&Session::begin_update), "changed"_a)
      .def("begin_clipping", call(&Session::begin_clipping))
      .def("is_stepped", call(&Session::is_stepped), "bucket"_a)
      .def("set_sync", call(&Session::set_sync), "sync"_a)
      .def_property_readonly("sync", call(&Session::sync))
      .def("used", call(&Session::used), "parameter"_a)
      .def(
          "set_state",
          [](SessionHandle& self, int parameter, const std::vector<PythonTensor>& state) {
            std::vector<TensorView> views;
            for (const TensorSpec& each : tensors(state))
              views.push_back({each.data, static_cast<std::size_t>(each.elements), each.dtype});
            self.session.set_state(parameter, std::move(views));
          },
          "parameter"_a, "tensors"_a)
      .def("gradient_norm", call(&Session::gradient_norm), Unlocked())
      .def("scale_gradients", call(&Session::scale_gradients), "factor"_a, Unlocked())
      .def("relayout", call(&Session::relayout), Unlocked());
}

void bind_whole_model(Class& session) {
  session.def("finish", call(&Session::finish), Unlocked())
      .def(
          "averaged",
          [](SessionHandle& self, const std::vector<std::uintptr_t>& into) {
            std::vector<std::byte*> pointers;
            for (const std::uintptr_t each : into) pointers.push_back(address(each));
            self.session.averaged(pointers);
          },
          "into"_a, Unlocked())
      .def("consensus_distance", call(&Session::consensus_distance), Unlocked())
      .def(
          "broadcast",
          [](SessionHandle& self, std::uintptr_t pointer, std::size_t bytes) {
            self.session.broadcast({address(pointer), bytes});
          },
          "address"_a, "bytes"_a, Unlocked())
      .def(
          "average",
          [](SessionHandle& self, std::vector<double> values) {
            self.session.average(values);
            return values;
          },
          "values"_a, Unlocked())
      .def(
          "average_at",
          [](SessionHandle& self, std::uintptr_t pointer, std::size_t count) {
            self.session.average({reinterpret_cast<double*>(pointer), count});
          },
          "address"_a, "count"_a, "The same for float64 values in place.", Unlocked())
      .def("save",
           [](SessionHandle& self) {
             std::vector<std::byte> saved;
             {
               const py::gil_scoped_release unlocked;
               saved = self.session.save();
             }
             return py::bytes(reinterpret_cast<const char*>(saved.data()), saved.size());
           })
      .def("stats", call(&Session::stats))
      .def("plan", call(&Session::plan))
      .def_property_readonly("sensed",
                             [](const SessionHandle& self) {
                               std::vector<std::pair<Step, std::string>> all;
                               for (const Sensed& each : self.session.sensed())
                                 all.emplace_back(each.step, each.what);
                               return all;
                             })
      .def("timeline", [](const SessionHandle& self) { return to_json(self.session.timeline()); })
      .def_property_readonly("timeline_begin", [](const SessionHandle& self) {
        return self.session.timeline_begin().count();
      });
}

}  // namespace

void bind_session(py::module_& module) {
  bind_memory(module);
  bind_stats(module);
  bind_flight(module);
  Class session(module, "Session", "Runs a strategy's programs on real memory, step by step.");
  session.def(py::init(&make_session), "engine"_a, "strategy"_a, "parameters"_a, py::kw_only(),
              "buffers"_a = std::vector<PythonTensor>{}, "name"_a = "model",
              "cluster"_a = py::none(), "trace"_a = py::none(), "plan"_a = py::none(),
              "profile"_a = false, "measure_network"_a = true, "sense"_a = true,
              "sense_window"_a = 20, "broadcast"_a = true, "resume"_a = py::none(),
              "overlap"_a = "full", "record"_a = false, "timeout"_a = 600.0,
              "compute_threads"_a = 1, "shapes"_a = std::vector<std::vector<std::int64_t>>{},
              "first_q"_a = std::map<std::string, std::vector<double>>{});
  bind_layout(session);
  bind_step(session);
  bind_whole_model(session);
}

}  // namespace riffle::python
