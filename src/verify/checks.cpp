#include "verify/checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace riffle::verifier {

Problem problem(Problem::Check check, const Instance& at, Group ranks, std::string what) {
  return {check, at.step, at.exchange->bucket, std::move(ranks), std::move(what)};
}
Problem problem(Problem::Check check, const Instance& at, std::string what) {
  return problem(check, at, at.exchange->group, std::move(what));
}

std::string describe(const Instance& at) {
  return fmt::format("the {} {} of {} of step {}", name_of(at.exchange->payload),
                     name_of(at.exchange->collective), print(at.exchange->group), at.step);
}

void add(std::vector<Problem>& problems, Problem found) {
  constexpr std::ptrdiff_t kMost = 8;
  if (std::ranges::count(problems, found.check, &Problem::check) < kMost)
    problems.push_back(std::move(found));
}

}  // namespace riffle::verifier
