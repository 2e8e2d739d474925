// riffle._core: the torch-free part of the package, so that it works with any torch 2.x.
#include "bindings.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ core of Riffle: schedules as data, and their readers.";
  module.attr("__version__") = RIFFLE_VERSION;
  riffle::python::bind_errors(module);
  riffle::python::bind_model(module);
  riffle::python::bind_program(module);
  riffle::python::bind_strategies(module);
  riffle::python::bind_analysis(module);
  riffle::python::bind_engines(module);
  riffle::python::bind_session(module);
}
