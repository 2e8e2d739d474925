// Trace, Cluster, World and Bucket.
#include <pybind11/stl.h>

#include "bindings.h"
#include "riffle/bucket.h"
#include "riffle/load.h"
#include "riffle/world.h"
#include "riffle/zoo.h"

namespace py = pybind11;
using namespace py::literals;

namespace riffle::python {
namespace {

Trace make_trace(std::vector<Layer> layers, std::string model, const std::string& dtype, int batch,
                 double optimizer_step) {
  Trace trace{.model = std::move(model),
              .dtype = parse_dtype(dtype, "dtype"),
              .batch = batch,
              .layers = std::move(layers),
              .optimizer_step = Seconds(optimizer_step),
              .source = ""};
  validate(trace, "trace");
  return trace;
}

void bind_trace(py::module_& module) {
  py::class_<Layer>(module, "Layer", "A unit whose gradient becomes ready at once.")
      .def(py::init([](std::string name, std::int64_t elements, double forward, double backward,
                       std::vector<std::int64_t> shape) {
             return Layer{std::move(name), elements, Seconds(forward), Seconds(backward),
                          std::move(shape)};
           }),
           "name"_a, "elements"_a, "forward"_a = 0.0, "backward"_a = 0.0,
           "shape"_a = std::vector<std::int64_t>{})
      .def_readonly("name", &Layer::name)
      .def_readonly("elements", &Layer::elements)
      .def_readonly("shape", &Layer::shape)
      .def_property_readonly("forward", [](const Layer& self) { return self.forward.count(); })
      .def_property_readonly("backward", [](const Layer& self) { return self.backward.count(); })
      .def("__eq__", [](const Layer& self, const Layer& other) { return self == other; });
  py::class_<Trace>(module, "Trace", "The layers of a model with their sizes and times.")
      .def(py::init(&make_trace), "layers"_a, "model"_a = "model", "dtype"_a = "f32", "batch"_a = 1,
           "optimizer_step"_a = 0.0)
      .def_readonly("layers", &Trace::layers)
      .def_readonly("model", &Trace::model)
      .def_readonly("batch", &Trace::batch)
      .def_property_readonly("dtype", [](const Trace& self) { return name_of(self.dtype); })
      .def_property_readonly("parameters", &Trace::parameters)
      .def_property_readonly("compute", [](const Trace& self) { return self.compute().count(); })
      .def("to_json", [](const Trace& self) { return to_json(self); })
      .def_static(
          "from_json", [](const std::string& text) { return trace_from_json(text, "trace"); },
          "text"_a)
      .def("__str__", [](const Trace& self) { return print(self); });
  module.def("load_trace", &load_trace, "name_or_file"_a,
             "A built-in model, or a file in any known format.");
  module.def("builtin_traces", &builtin_traces, "The names of the built-in models.");
}

void bind_cluster(py::module_& module) {
  py::class_<Cluster>(module, "Cluster", "Workers, links, latencies, bandwidths, racks, speeds.")
      .def(py::init(&load_cluster), "spec_or_file"_a)
      .def_static(
          "from_json", [](const std::string& text) { return cluster_from_json(text, "cluster"); },
          "text"_a)
      .def_property_readonly("size", &Cluster::size)
      .def("resized", &resized, "workers"_a, "The same shape with another number of workers.")
      .def("to_json", [](const Cluster& self) { return to_json(self); })
      .def("__eq__", [](const Cluster& self, const Cluster& other) { return self == other; })
      .def("__repr__", [](const Cluster& self) { return "<" + print(self) + ">"; })
      .def("__str__", [](const Cluster& self) { return print(self); });
}

World make_world(Cluster cluster, const std::optional<std::vector<Rank>>& ranks,
                 std::uint64_t epoch) {
  if (!ranks) return World(std::move(cluster));
  return {std::move(cluster), Membership{.epoch = epoch, .ranks = Group(*ranks)}};
}

void bind_world(py::module_& module) {
  py::class_<World>(module, "World", "The live ranks and the agreed topology.")
      .def(py::init(&make_world), "cluster"_a, "ranks"_a = py::none(), "epoch"_a = 0)
      .def(py::init([](const std::string& spec) { return World(load_cluster(spec)); }), "cluster"_a)
      .def_property_readonly("size", &World::size)
      .def_property_readonly("ranks", [](const World& self) { return self.ranks().ranks(); })
      .def_property_readonly("epoch", [](const World& self) { return self.membership.epoch; })
      .def_readonly("cluster", &World::cluster)
      .def("racks",
           [](const World& self) {
             std::vector<std::vector<Rank>> racks;
             for (const Group& rack : self.racks()) racks.push_back(rack.ranks());
             return racks;
           })
      .def("to_json", [](const World& self) { return to_json(self); })
      .def("__eq__", [](const World& self, const World& other) { return self == other; });
}

void bind_buckets(py::module_& module) {
  py::class_<Bucket>(module, "Bucket", "Layers first..last of a trace, sent as one message.")
      .def_readonly("id", &Bucket::id)
      .def_readonly("first", &Bucket::first)
      .def_readonly("last", &Bucket::last)
      .def_property_readonly("bytes", [](const Bucket& self) { return self.bytes.count; })
      .def_property_readonly("compute", [](const Bucket& self) { return self.compute.count(); })
      .def("__eq__", [](const Bucket& self, const Bucket& other) { return self == other; });
  module.def("make_buckets", &make_buckets, "trace"_a, "layers_each"_a,
             "Buckets of so many layers each, counted from the last layer backward.");
  module.def("one_bucket", &one_bucket, "trace"_a);
  module.def("bucket_per_layer", &bucket_per_layer, "trace"_a);
}

}  // namespace

void bind_model(py::module_& module) {
  bind_trace(module);
  bind_cluster(module);
  bind_world(module);
  bind_buckets(module);
}

}  // namespace riffle::python
