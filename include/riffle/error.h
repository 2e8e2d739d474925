// Three kinds of error. UsageError: the caller can mend it (bad input; the command exits with 2).
// CommError: a peer or the network failed (names rank, group, operation, bucket and step; exit 1).
// InternalError: a bug of ours, from RIFFLE_CHECK, which prints both values.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace riffle {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

template <typename... Args>
[[noreturn]] void usage_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UsageError(fmt::format(format, std::forward<Args>(args)...));
}

namespace detail {
[[noreturn]] void check_failed(const char* expression, const std::string& values, const char* file,
                               int line);
template <typename A, typename B>
std::string both(const A& a, const B& b) {
  return fmt::format("{} against {}", a, b);
}
}  // namespace detail

}  // namespace riffle

#define RIFFLE_CHECK(condition)                                                                \
  do {                                                                                         \
    if (!(condition)) ::riffle::detail::check_failed(#condition, "false", __FILE__, __LINE__); \
  } while (false)

#define RIFFLE_CHECK_EQ(a, b)                                                                  \
  do {                                                                                         \
    if (!((a) == (b)))                                                                         \
      ::riffle::detail::check_failed(#a " == " #b, ::riffle::detail::both((a), (b)), __FILE__, \
                                     __LINE__);                                                \
  } while (false)
