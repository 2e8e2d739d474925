#include "python_strategy.h"

#include <pybind11/stl.h>

namespace py = pybind11;

namespace riffle::python {
namespace {

class PythonStrategy : public Strategy {
 public:
  explicit PythonStrategy(py::object object) : object_(std::move(object)) {}
  PythonStrategy(const PythonStrategy&) = delete;
  PythonStrategy& operator=(const PythonStrategy&) = delete;
  ~PythonStrategy() override {
    const py::gil_scoped_acquire gil;
    object_ = py::object();
  }

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& cost,
                                   const World& world) const override {
    const py::gil_scoped_acquire gil;
    const auto by_reference = py::return_value_policy::reference;
    return object_.attr("buckets")(trace, py::cast(&cost, by_reference), world).cast<BucketPlan>();
  }
  [[nodiscard]] Program program(Step step, const World& world,
                                const BucketPlan& buckets) const override {
    const py::gil_scoped_acquire gil;
    return object_.attr("program")(step, world, buckets).cast<Program>();
  }
  [[nodiscard]] Traits traits(const World& world) const override {
    const py::gil_scoped_acquire gil;
    return object_.attr("traits")(world).cast<Traits>();
  }

 private:
  py::object object_;
};

}  // namespace

std::unique_ptr<Strategy> wrap_strategy(py::object object) {
  return std::make_unique<PythonStrategy>(std::move(object));
}

}  // namespace riffle::python
