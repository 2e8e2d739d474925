#include "riffle/error.h"

namespace riffle::detail {

void check_failed(const char* expression, const std::string& values, const char* file, int line) {
  throw InternalError(
      fmt::format("internal error: {}:{}: {} ({})", file, line, expression, values));
}

}  // namespace riffle::detail
