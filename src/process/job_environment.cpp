#include "process/job_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace riffle::process {

Environment own_environment() {
  Environment result;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

Environment job_environment(const JobShape& shape) {
  Environment result = own_environment();
  const std::string workers = std::to_string(shape.workers);
  const std::string job = fmt::format("riffle-{}", getpid());
  const Environment ours = {{"WORLD_SIZE", workers},
                            {"LOCAL_WORLD_SIZE", std::to_string(shape.per_host)},
                            {"GROUP_WORLD_SIZE", std::to_string(shape.workers / shape.per_host)},
                            {"ROLE_NAME", "default"},
                            {"ROLE_WORLD_SIZE", workers},
                            {"MASTER_ADDR", shape.master},
                            {"MASTER_PORT", std::to_string(shape.master_port)},
                            {"TORCHELASTIC_RUN_ID", job},
                            {"TORCHELASTIC_RESTART_COUNT", "0"},
                            {"TORCHELASTIC_MAX_RESTARTS", "0"},
                            {"RIFFLE_JOB", job}};
  for (const auto& [name, value] : ours) result.insert_or_assign(name, value);
  // Workers share the cores; torch's default, all of them for each, is slower than one.
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  result.emplace("OMP_NUM_THREADS", std::to_string(std::max(1, cores / shape.workers)));
  return result;
}

std::vector<std::string> variables_of(const Environment& environment) {
  std::vector<std::string> result;
  for (const auto& [name, value] : environment) result.push_back(fmt::format("{}={}", name, value));
  return result;
}

std::vector<std::string> rank_environment(Environment environment, const JobShape& shape,
                                          int rank) {
  for (const char* name : {"RANK", "ROLE_RANK"})
    environment.insert_or_assign(name, std::to_string(rank));
  environment.insert_or_assign("LOCAL_RANK", std::to_string(rank % shape.per_host));
  environment.insert_or_assign("GROUP_RANK", std::to_string(rank / shape.per_host));
  return variables_of(environment);
}

}  // namespace riffle::process
