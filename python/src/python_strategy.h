// A strategy written in Python, seen from C++.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "riffle/strategy.h"

namespace riffle::python {

// Calls buckets, program and traits of `object`, from any thread.
std::unique_ptr<Strategy> wrap_strategy(pybind11::object object);

}  // namespace riffle::python
