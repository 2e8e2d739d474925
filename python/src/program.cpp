// Exchange and Program, and the words they are made of.
#include "riffle/program.h"

#include <pybind11/stl.h>

#include "bindings.h"
#include "words.h"

namespace py = pybind11;
using namespace py::literals;

namespace riffle::python {
namespace {

void bind_due(py::module_& module) {
  py::class_<Due>(module, "Due", "When an exchange must be merged.")
      .def_readonly("steps", &Due::steps)
      .def_property_readonly("point", [](const Due& self) { return name_of(self.point); })
      .def("__eq__", [](const Due& self, const Due& other) { return self == other; });
  module.def("before_step", &before_step, "steps"_a = 0,
             "Just before the optimizer updates the bucket, so many steps later.");
  module.def("after_step", &after_step, "steps"_a = 0,
             "Just after the optimizer has updated the bucket, so many steps later.");
  module.def("before_forward", &before_forward, "steps"_a = 1,
             "Before the bucket's layers are used in forward, so many steps later.");
}

void bind_merge(py::module_& module) {
  py::class_<Merge>(module, "Merge", "How the result joins the local value.")
      .def_property_readonly("kind", [](const Merge& self) { return name_of(self.kind); })
      .def_readonly("xi", &Merge::xi)
      .def_readonly("scale", &Merge::scale)
      .def_readonly("learning_rate", &Merge::learning_rate)
      .def_readonly("momentum", &Merge::momentum)
      .def_readonly("nesterov", &Merge::nesterov)
      .def("__eq__", [](const Merge& self, const Merge& other) { return self == other; });
  module.def("replace", &replace, "x <- mean");
  module.def("mix", &mix, "xi"_a, "x <- xi*x + (1-xi)*mean");
  module.def("correct", &correct, "scale"_a = 1.0,
             "The delta rule: x <- x + scale*(mean of snapshots - own snapshot)");
  module.def("outer", &outer, "learning_rate"_a, "momentum"_a, "nesterov"_a = true, "xi"_a = 0.0,
             "An outer step from the last agreed value along (it - mean): Nesterov or heavy ball; "
             "with a local share xi it may be merged late.");
}

// Keyword arguments of Exchange(...), in the order of the struct.
Exchange make_exchange(int bucket, std::vector<Rank> group, const std::string& payload,
                       std::vector<double> weights, std::vector<double> scales,
                       const std::string& collective, int shift, int ahead,
                       const std::string& algorithm, int lane, const std::string& start, Due due,
                       Merge merge, const std::string& wire, bool feedback) {
  return {.bucket = bucket,
          .payload = parse_payload(payload),
          .group = Group(std::move(group)),
          .weights = std::move(weights),
          .scales = std::move(scales),
          .collective = parse_collective(collective),
          .shift = shift,
          .ahead = ahead,
          .algorithm = parse_algorithm(algorithm, "algorithm"),
          .lane = lane,
          .start = parse_start(start),
          .due = due,
          .merge = merge,
          .wire = parse_wire(wire, "wire"),
          .feedback = feedback};
}

void bind_exchange(py::module_& module) {
  py::class_<Exchange>(module, "Exchange", "One collective of one bucket in one group.")
      .def(py::init(&make_exchange), "bucket"_a, "group"_a, py::kw_only(), "payload"_a = "gradient",
           "weights"_a = std::vector<double>{}, "scales"_a = std::vector<double>{},
           "collective"_a = "all_reduce", "shift"_a = 0, "ahead"_a = -1, "algorithm"_a = "auto",
           "lane"_a = 0, "start"_a = "bucket_ready", "due"_a = Due{}, "merge"_a = Merge{},
           "wire"_a = "f32", "feedback"_a = true)
      .def_readonly("bucket", &Exchange::bucket)
      .def_property_readonly("group", [](const Exchange& self) { return self.group.ranks(); })
      .def_property_readonly("payload", [](const Exchange& self) { return name_of(self.payload); })
      .def_readonly("weights", &Exchange::weights)
      .def_readonly("scales", &Exchange::scales)
      .def_property_readonly("collective",
                             [](const Exchange& self) { return name_of(self.collective); })
      .def_readonly("shift", &Exchange::shift)
      .def_readonly("ahead", &Exchange::ahead)
      .def_property_readonly("algorithm",
                             [](const Exchange& self) { return name_of(self.algorithm); })
      .def_readonly("lane", &Exchange::lane)
      .def_property_readonly("start", [](const Exchange& self) { return name_of(self.start); })
      .def_readonly("due", &Exchange::due)
      .def_readonly("merge", &Exchange::merge)
      .def_property_readonly("wire", [](const Exchange& self) { return name_of(self.wire); })
      .def_readonly("feedback", &Exchange::feedback)
      .def("__eq__", [](const Exchange& self, const Exchange& other) { return self == other; })
      .def("__repr__", [](const Exchange& self) { return "<" + print(self) + ">"; });
}

}  // namespace

void bind_program(py::module_& module) {
  bind_due(module);
  bind_merge(module);
  bind_exchange(module);
  py::class_<Program>(module, "Program", "The exchanges of one step, in issue order.")
      .def(py::init([](std::vector<Exchange> exchanges) { return Program{std::move(exchanges)}; }),
           "exchanges"_a = std::vector<Exchange>{})
      .def_readonly("exchanges", &Program::exchanges)
      .def("add", &Program::add, "exchange"_a)
      .def("to_json", [](const Program& self) { return to_json(self); })
      .def_static(
          "from_json", [](const std::string& text) { return program_from_json(text, "program"); },
          "text"_a)
      .def("__len__", [](const Program& self) { return self.exchanges.size(); })
      .def("__eq__", [](const Program& self, const Program& other) { return self == other; })
      .def("__str__", [](const Program& self) { return print(self); });
}

}  // namespace riffle::python
