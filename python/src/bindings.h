// The parts of riffle._core, one function per file. Times are floats in seconds and sizes ints in
// bytes on the Python side; words (payloads, starts, ...) are strings, spelled as in JSON.
#pragma once

#include <pybind11/pybind11.h>

namespace riffle::python {

void bind_errors(pybind11::module_& module);
void bind_model(pybind11::module_& module);
void bind_program(pybind11::module_& module);
void bind_strategies(pybind11::module_& module);
void bind_analysis(pybind11::module_& module);
void bind_engines(pybind11::module_& module);
void bind_session(pybind11::module_& module);

}  // namespace riffle::python
