#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "converge/problems.h"
#include "riffle/error.h"

namespace riffle {
namespace {

using convergence::Data;
using Sizes = std::vector<std::size_t>;

Sizes parse_sizes(const std::string& text, std::size_t least, std::size_t most) {
  Sizes sizes;
  if (text.empty()) return sizes;
  for (const std::string_view part : split(text, '-')) {
    const std::int64_t size = parse_integer(part, "--layers");
    if (size < 1 || size > 100'000) usage_error("--layers: {} must be from 1 to 100000", size);
    sizes.push_back(static_cast<std::size_t>(size));
  }
  if (sizes.size() < least || sizes.size() > most)
    usage_error("--layers: {} has {} sizes, the problem has {} to {}", quote(text), sizes.size(),
                least, most);
  return sizes;
}

Data load(const ProblemOptions& options, const Sizes& sizes, int workers) {
  const bool fits = sizes.empty() || (sizes.front() == 784 && sizes.back() == 10);
  const auto cached = convergence::digits_folder();
  if (options.data == "digits" && !cached)
    usage_error(
        "--data digits: not in the cache folder; `riffle data fetch mnist` gets it, or "
        "take --data synthetic");
  if (options.data != "synthetic" && options.data != "auto" && options.data != "digits")
    return convergence::read_digits(options.data);
  if (cached && fits && options.data != "synthetic") return convergence::read_digits(*cached);
  if (options.data == "digits") return convergence::read_digits(*cached);  // says what does not fit
  const std::size_t needed = static_cast<std::size_t>(workers) * options.batch;
  return convergence::make_clouds(sizes.empty() ? 64 : sizes.front(),
                                  sizes.empty() ? 10 : static_cast<int>(sizes.back()),
                                  std::max<std::size_t>(20'000, 4 * needed), options.seed);
}

Sizes sizes_for(const ProblemOptions& options, const Data& data, Sizes given) {
  const auto classes = static_cast<std::size_t>(data.classes);
  if (given.empty()) {
    given = {data.width, classes};
    if (options.problem == "network") given.insert(given.begin() + 1, data.width > 100 ? 64 : 32);
  }
  if (given.front() != data.width || given.back() != classes)
    usage_error("--layers: {} has {} values and {} classes", data.name, data.width, classes);
  return given;
}

}  // namespace

std::unique_ptr<LearningProblem> make_problem(const ProblemOptions& options, int workers) {
  if (!std::isfinite(options.noise)) usage_error("--noise: {} is no number", options.noise);
  if (!std::isfinite(options.condition))
    usage_error("--condition: {} is no number", options.condition);
  if (options.problem == "quadratic") return convergence::make_quadratic(options, workers);
  const std::vector<std::string> known{"quadratic", "logistic", "network"};
  if (std::ranges::find(known, options.problem) == known.end())
    throw UsageError(unknown_name("problem", options.problem, known));
  const bool network = options.problem == "network";
  const Sizes given = parse_sizes(options.layers, network ? 3 : 2, network ? 8 : 2);
  Data data = load(options, given, workers);
  Sizes sizes = sizes_for(options, data, given);
  return convergence::make_network(std::move(data), std::move(sizes), options, workers);
}

}  // namespace riffle
