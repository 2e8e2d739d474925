// The three kinds of error as Python exceptions: UsageError is a ValueError, the others are
// RuntimeErrors; a CommError carries what is known as attributes.
#include <pybind11/stl.h>

#include "bindings.h"
#include "riffle/comm_error.h"
#include "riffle/error.h"

namespace py = pybind11;

namespace riffle::python {
namespace {

void raise(const py::handle& type, const CommError& error) {
  const py::object exception = type(error.what());
  exception.attr("failure") = name_of(error.failure());
  exception.attr("rank") = error.rank();
  exception.attr("host") = error.host();
  exception.attr("group") = error.group().ranks();
  exception.attr("operation") = error.operation();
  exception.attr("bucket") = error.bucket();
  exception.attr("step") = error.step();
  PyErr_SetObject(type.ptr(), exception.ptr());
}

}  // namespace

void bind_errors(py::module_& module) {
  py::register_exception<UsageError>(module, "UsageError", PyExc_ValueError);
  py::register_exception<InternalError>(module, "InternalError", PyExc_RuntimeError);
  static const py::handle comm_error =
      py::exception<CommError>(module, "CommError", PyExc_RuntimeError).release();
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(std::move(thrown));
    } catch (const CommError& error) {
      raise(comm_error, error);
    }
  });
}

}  // namespace riffle::python
