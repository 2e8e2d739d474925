#include "support/calls.h"

#include <fmt/format.h>

#include <cmath>

namespace riffle::test {
namespace {

struct Expected {
  double value = 0;
  double magnitude = 0;  // of the operands, for the error bound
};

// The weighted sum or mean over some members' inputs at element i.
Expected reduced(const MadeCall& made, const std::vector<Values>& inputs,
                 const std::vector<int>& members, std::size_t i) {
  Expected sum;
  double total = 0;
  for (const int member : members) {
    const double weight = made.call.weights.empty() ? 1 : made.call.weights[member];
    sum.value += weight * inputs[member].at(i);
    sum.magnitude += std::fabs(weight * inputs[member].at(i));
    total += weight;
  }
  if (made.call.reduction == Reduction::sum) return sum;
  if (total == 0) return {inputs[members.front()].at(i), 0};
  return {sum.value / total, sum.magnitude / total};
}

bool in_slice(const MadeCall& made, int member, std::size_t i) {
  const Slice slice = slice_of(made.count, made.dtype, made.call.group.size(), member);
  return i >= slice.begin && i < slice.begin + slice.count;
}

int owner(const MadeCall& made, std::size_t i) {
  int member = 0;
  while (!in_slice(made, member, i)) ++member;
  return member;
}

Expected expected(const MadeCall& made, const std::vector<Values>& inputs, int me, std::size_t i) {
  const int n = made.call.group.size();
  std::vector<int> all(n);
  for (int m = 0; m < n; ++m) all[m] = m;
  switch (made.call.operation) {
    case collective::Operation::all_gather:
      return {inputs[owner(made, i)].at(i), 0};
    case collective::Operation::broadcast:
      return {inputs[made.call.root].at(i), 0};
    case collective::Operation::shift: {
      const int places = ((made.call.places % n) + n) % n;
      return reduced(made, inputs, {me, (me - places + n) % n}, i);
    }
    case collective::Operation::barrier:
      return {inputs[me].at(i), 0};
    default:
      return reduced(made, inputs, all, i);
  }
}

}  // namespace

std::string describe(const MadeCall& made) {
  collective::Call call = made.call;
  call.data = {nullptr, made.count, made.dtype};
  return collective::describe(header_of(call)) + " of " + print(made.call.group);
}

Values input_of(const MadeCall& made, int member) {
  Random random(made.seed, static_cast<std::uint64_t>(member));
  Values values(made.count, made.dtype);
  for (std::size_t i = 0; i < made.count; ++i) values.set(i, random.uniform(-1, 1));
  return values;
}

std::string check(const MadeCall& made, int me, const Values& result) {
  const int n = made.call.group.size();
  std::vector<Values> inputs;
  for (int m = 0; m < n; ++m) inputs.push_back(input_of(made, m));
  // Each of up to n additions, the weights, the scale and the final store round once.
  const double unit = rounding(made.dtype) * (n + 4);
  for (std::size_t i = 0; i < made.count; ++i) {
    if (made.call.operation == collective::Operation::reduce_scatter && !in_slice(made, me, i))
      continue;
    const Expected want = expected(made, inputs, me, i);
    if (!(std::fabs(result.at(i) - want.value) <= unit * want.magnitude + 1e-7 * unit))
      return fmt::format("element {} is {} instead of {}", i, result.at(i), want.value);
  }
  return "";
}

MadeCall make_call(Random& random, const Group& group, std::size_t most_elements) {
  MadeCall made;
  const auto n = static_cast<std::uint64_t>(group.size());
  made.call.operation = static_cast<collective::Operation>(random.below(6));
  made.call.group = group;
  made.call.reduction = random.below(2) == 0 ? Reduction::mean : Reduction::sum;
  if (random.below(3) == 0) {
    for (std::uint64_t i = 0; i < n; ++i) made.call.weights.push_back(random.uniform(0.1, 4));
  }
  made.call.algorithm = static_cast<Algorithm>(random.below(6));
  made.call.root = static_cast<int>(random.below(n));
  made.call.places = static_cast<int>(random.below(n + 2));
  made.count = random.below(most_elements + 1);
  made.dtype = static_cast<DType>(random.below(4));
  made.seed = random.next();
  return made;
}

}  // namespace riffle::test
