// The table of strategies, and strategies themselves: built in, or written in Python.
#include <pybind11/stl.h>

#include "bindings.h"
#include "python_strategy.h"
#include "riffle/strategy.h"
#include "strategies/true_sizes.h"
#include "words.h"

namespace py = pybind11;
using namespace py::literals;

namespace riffle::python {
namespace {

void bind_traits(py::module_& module) {
  py::class_<Traits>(module, "Traits", "What a strategy promises.")
      .def(py::init([](bool exact, int period, int staleness, const std::string& mixed,
                       double effective_step, bool timed, int round) {
             return Traits{.exact = exact,
                           .period = period,
                           .staleness = staleness,
                           .mixed = parse_payload(mixed),
                           .timed = timed,
                           .round = round,
                           .effective_step = effective_step};
           }),
           "exact"_a = false, "period"_a = 1, "staleness"_a = 0, "mixed"_a = "gradient",
           "effective_step"_a = 1.0, "timed"_a = false, "round"_a = 1)
      .def_readonly("exact", &Traits::exact)
      .def_readonly("period", &Traits::period)
      .def_readonly("staleness", &Traits::staleness)
      .def_readonly("effective_step", &Traits::effective_step)
      .def_readonly("timed", &Traits::timed)
      .def_readonly("round", &Traits::round)
      .def_property_readonly("mixed", [](const Traits& self) { return name_of(self.mixed); });
}

void bind_cost(py::module_& module) {
  py::class_<CostModel>(module, "CostModel", "What collectives cost on one cluster.")
      .def(py::init<Cluster>(), "cluster"_a)
      .def(
          "all_reduce",
          [](const CostModel& self, const std::vector<Rank>& group, std::int64_t bytes) {
            return self.curve(Group(group))(Bytes{bytes}).count();
          },
          "group"_a, "bytes"_a, "Seconds of the cheapest all-reduce of so many bytes.");
}

void bind_options(py::module_& module) {
  py::class_<OptionInfo>(module, "Option", "One option of a strategy: the default value first.")
      .def(py::init<std::string, std::string, std::string>(), "key"_a, "values"_a, "help"_a = "")
      .def_readonly("key", &OptionInfo::key)
      .def_readonly("values", &OptionInfo::values)
      .def_readonly("help", &OptionInfo::help);
  py::class_<Options>(module, "Options", "The options a strategy is made with.")
      .def("text", &Options::text, "key"_a)
      .def("integer", &Options::integer, "key"_a, "low"_a)
      .def("number", &Options::number, "key"_a, "low"_a, "high"_a)
      .def("boolean", &Options::boolean, "key"_a)
      .def("choice", &Options::choice, "key"_a);
}

void bind_named(py::module_& module) {
  py::class_<NamedStrategy>(module, "NamedStrategy", "A strategy made from name:key=value,...")
      .def_readonly("name", &NamedStrategy::name)
      .def_property_readonly(
          "options", [](const NamedStrategy& self) { return py::dict(py::cast(self.options)); })
      .def_readonly("spec", &NamedStrategy::spec)
      .def(
          "buckets",
          [](const NamedStrategy& self, const Trace& trace, const World& world) {
            return self->buckets(trace, CostModel(world.cluster), world);
          },
          "trace"_a, "world"_a, "How the layers of a model travel.")
      .def(
          "program",
          [](const NamedStrategy& self, Step step, const World& world, const BucketPlan& buckets) {
            return self->program(step, world, buckets);
          },
          "step"_a, "world"_a, "buckets"_a, "The exchanges of a step, for the whole world.")
      .def(
          "traits",
          [](const NamedStrategy& self, const World& world, const BucketPlan& buckets) {
            return self->traits_with(world, buckets);
          },
          "world"_a, "buckets"_a = BucketPlan{})
      .def("with_true_sizes",
           py::overload_cast<NamedStrategy, std::vector<std::int64_t>, double>(&with_true_sizes),
           "elements"_a, "shrink"_a,
           "For a model whose tensors stand for larger ones: the buckets of the true model.")
      .def("__repr__", [](const NamedStrategy& self) { return "<strategy " + self.spec + ">"; });
}

void add_strategy(StrategyTable& table, const std::string& name, const std::string& summary,
                  const std::string& paper, bool exact, const std::vector<OptionInfo>& options,
                  py::function make) {
  // Copied and dropped by threads that do not hold Python's lock.
  const std::shared_ptr<py::function> shared(new py::function(std::move(make)),
                                             [](const py::function* function) {
                                               const py::gil_scoped_acquire gil;
                                               delete function;
                                             });
  table.add({.name = name,
             .summary = summary,
             .paper = paper,
             .exact = exact,
             .options = options,
             .make = [shared](const Options& given) {
               const py::gil_scoped_acquire gil;
               return wrap_strategy((*shared)(given));
             }});
}

void bind_table(py::module_& module) {
  py::class_<StrategyInfo>(module, "StrategyInfo", "What is known of a strategy by its name.")
      .def_readonly("name", &StrategyInfo::name)
      .def_readonly("summary", &StrategyInfo::summary)
      .def_readonly("paper", &StrategyInfo::paper)
      .def_readonly("exact", &StrategyInfo::exact)
      .def_readonly("options", &StrategyInfo::options)
      .def("__repr__", [](const StrategyInfo& self) { return "<strategy " + self.name + ">"; });
  py::class_<StrategyTable>(module, "StrategyTable", "The strategies known by name.")
      .def(py::init(&StrategyTable::builtin))
      .def("all", &StrategyTable::all)
      .def("info", &StrategyTable::info, "name"_a)
      .def("make", &StrategyTable::make, "spec"_a)
      .def("add", &add_strategy, "name"_a, "summary"_a, "paper"_a, "exact"_a, "options"_a, "make"_a,
           "Registers one more; `make` turns Options into a strategy object.");
}

}  // namespace

void bind_strategies(py::module_& module) {
  bind_traits(module);
  bind_cost(module);
  bind_options(module);
  bind_named(module);
  bind_table(module);
}

}  // namespace riffle::python
