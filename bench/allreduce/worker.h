// What all C++ workers of `riffle bench allreduce` do alike.
//
// A worker connects to the command's socket (abstract, or a path, which also works between network
// namespaces; named in its arguments) and sends its rank on a line. The command sends lines "run
// BYTES CALLS"; every call rewrites the buffer, meets the others, and takes the clock
// (CLOCK_MONOTONIC, the same for all processes) before and after the all-reduce. The worker answers
// with a line "BEFORE AFTER" in nanoseconds for each call, or with "wrong" when a sum is not what
// it must be. Until then it sleeps in recv and disturbs nobody.
#pragma once

#include <cstddef>
#include <functional>

namespace riffle::bench {

struct Contender {
  std::function<float*(std::size_t bytes)> prepare;  // a buffer, valid until the next prepare
  std::function<void()> meet;
  std::function<void(float*, std::size_t)> all_reduce;  // the sum, in place
};

// Returns when the command closes the connection.
void serve(const char* socket, int rank, int size, const Contender& contender);

}  // namespace riffle::bench
