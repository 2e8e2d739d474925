// An exchanger written in Python: a process group of torch (riffle/_process_group.py).
#pragma once

#include <pybind11/pybind11.h>

#include "runtime/exchanger.h"

namespace riffle::python {

// `object` has the methods that riffle/_process_group.py describes. Views are passed as
// (address, count, dtype), flights as Flight.
std::unique_ptr<runtime::Exchanger> python_exchanger(pybind11::object object);

void bind_flight(pybind11::module_& module);

}  // namespace riffle::python
