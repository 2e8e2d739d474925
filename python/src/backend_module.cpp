// The module that riffle.distributed loads: makes backends of torch.distributed. It is built
// against the pybind11 of torch, whose classes it must know.
#include <pybind11/chrono.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "backend/backend.h"
#include "backend/place.h"

PYBIND11_DECLARE_HOLDER_TYPE(T, c10::intrusive_ptr<T>, true)

namespace riffle::backend {
namespace {

namespace py = pybind11;

struct Joining {
  c10::intrusive_ptr<c10d::Store> store;
  std::string host;  // that all ranks reach
  int port = 0;
  std::string job;
  int rank = 0;
  int size = 1;
  double timeout = 60;
  std::string interface;
  std::string transport;
};

std::shared_ptr<distributed::World> join(const Joining& how) {
  try {
    TorchStore place(how.store, {how.host, how.port});
    NetworkEngineOptions options;
    options.place = &place;
    options.job = how.job;
    options.rank = how.rank;
    options.size = how.size;
    options.interface = how.interface;
    options.transport = how.transport;
    options.join_timeout = Seconds(how.timeout);
    return std::make_shared<distributed::World>(make_network_engine(options));
  } catch (...) {
    std::rethrow_exception(translated(std::current_exception()));
  }
}

c10::intrusive_ptr<c10d::Backend> make_backend(const std::shared_ptr<distributed::World>& world,
                                               const std::string& name,
                                               const std::vector<Rank>& ranks, double timeout) {
  try {
    return c10::make_intrusive<RiffleBackend>(
        world, distributed::TeamOptions{.name = name, .ranks = ranks, .timeout = Seconds(timeout)});
  } catch (...) {
    std::rethrow_exception(translated(std::current_exception()));
  }
}

}  // namespace
}  // namespace riffle::backend

PYBIND11_MODULE(_c10d_backend, m) {
  using namespace riffle::backend;
  namespace py = pybind11;
  py::module_::import("torch.distributed");  // whose classes are used below
  py::class_<riffle::distributed::World, std::shared_ptr<riffle::distributed::World>>(m, "World")
      .def(
          "rest",
          [](const riffle::distributed::World& world, double seconds) {
            return world.rest(riffle::Seconds(seconds));
          },
          py::call_guard<py::gil_scoped_release>());
  m.def(
      "join",
      [](c10::intrusive_ptr<c10d::Store> store, std::string host, int port, std::string job,
         int rank, int size, double timeout, std::string interface, std::string transport) {
        return join({std::move(store), std::move(host), port, std::move(job), rank, size, timeout,
                     std::move(interface), std::move(transport)});
      },
      py::call_guard<py::gil_scoped_release>());
  m.def("make_backend", &make_backend, py::call_guard<py::gil_scoped_release>());
}
