// The templates that wrap every step of a PatternOperation; for its own files only.
#pragma once

#include "collective/execute_pattern.h"

namespace riffle::collective {

template <typename Step>
auto PatternOperation::guarded(const Step& step) -> decltype(step()) {
  if (error_ == nullptr) {
    try {
      return step();
    } catch (...) {
      fail(std::current_exception());
    }
  }
  std::rethrow_exception(error_);
}

template <typename Step>
auto PatternOperation::from_engine(const Step& step) -> decltype(step()) {
  try {
    return step();
  } catch (const CommError& error) {
    explain(error);
  }
}

}  // namespace riffle::collective
