// Whether this build runs under a sanitizer, where everything takes several times as long.
#pragma once

namespace riffle::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

}  // namespace riffle::test
