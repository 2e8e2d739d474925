// Any environment, a variable per line: this process is alone, a rank of a job, or told what to
// mend.
#include <map>

#include "base/text.h"
#include "property.h"
#include "riffle/launch_environment.h"

using namespace riffle;  // NOLINT(google-build-using-namespace): a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::map<std::string, std::string, std::less<>> variables;
  for (const std::string_view line : split(fuzz::as_text(data, size), '\n'))
    if (const std::size_t equals = line.find('='); equals != std::string_view::npos)
      variables.emplace(line.substr(0, equals), line.substr(equals + 1));
  const auto result = fuzz::parsed([&] {
    return read_launch_environment([&](std::string_view name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
  });
  if (!result || !*result) return 0;
  const LaunchEnvironment& environment = **result;
  fuzz::require(environment.rank >= 0 && environment.rank < environment.size, "a rank");
  fuzz::require(environment.local_rank < environment.size, "a local rank");
  fuzz::require(environment.store.port > 0 && environment.store.port < 65536, "a port");
  fuzz::require(!environment.token.empty(), "a token");
  fuzz::require(environment.job.size() <= 60, "a short name");
  return 0;
}
