// Collective calls made up for tests, and what their results must be.
//
// Every rank can compute every member's input of a call, so each checks its own result against a
// reference in float64.
#pragma once

#include <string>

#include "collective/call.h"
#include "riffle/random.h"
#include "support/values.h"

namespace riffle::test {

// A call without its data: all that members agree on.
struct MadeCall {
  collective::Call call;
  std::size_t count = 0;
  DType dtype = DType::f32;
  std::uint64_t seed = 0;
};

std::string describe(const MadeCall& made);
// The input of a member (by index).
Values input_of(const MadeCall& made, int member);
// Empty when `result` is what this member should have; else what is wrong with it.
std::string check(const MadeCall& made, int member, const Values& result);
// Random operation, dtype, size, weights and so on over a group.
MadeCall make_call(Random& random, const Group& group, std::size_t most_elements);

}  // namespace riffle::test
