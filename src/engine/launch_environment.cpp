#include "riffle/launch_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/text.h"
#include "engine/launchers.h"
#include "riffle/engine.h"
#include "riffle/error.h"

namespace riffle {

namespace {

constexpr EnvironmentVariable variables[] = {
    {"RANK", "torchrun: this process's rank"},
    {"WORLD_SIZE", "torchrun: number of ranks"},
    {"LOCAL_RANK", "torchrun: rank among those of this host"},
    {"LOCAL_WORLD_SIZE", "torchrun: ranks of this host"},
    {"MASTER_ADDR", "any launcher: host of rank 0, where the store is"},
    {"MASTER_PORT", "any launcher: torch's own port there; the store takes the one 1000 above"},
    {"TORCHELASTIC_RUN_ID", "torchrun: name of the job"},
    {"TORCHELASTIC_RESTART_COUNT", "torchrun: how often the job was started again"},
    {"OMPI_COMM_WORLD_RANK", "Open MPI: rank"},
    {"OMPI_COMM_WORLD_SIZE", "Open MPI: number of ranks"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "Open MPI: rank on this host"},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "Open MPI: ranks of this host"},
    {"OMPI_MCA_orte_precondition_transports", "Open MPI 4: a random key of the job; the token"},
    {"PMIX_NAMESPACE", "Open MPI: name of the job"},
    {"PMI_RANK", "MPICH, Intel MPI, MVAPICH: rank"},
    {"PMI_SIZE", "MPICH, Intel MPI, MVAPICH: number of ranks"},
    {"PMI_JOBID", "MPICH, Intel MPI, MVAPICH: name of the job, where there is one"},
    {"MPI_LOCALRANKID", "MPICH, Intel MPI: rank on this host"},
    {"MPI_LOCALNRANKS", "MPICH, Intel MPI: ranks of this host"},
    {"SLURM_PROCID", "Slurm: rank"},
    {"SLURM_STEP_NUM_TASKS", "Slurm: number of ranks of the step"},
    {"SLURM_NTASKS", "Slurm: number of ranks, where the step has none of its own"},
    {"SLURM_LOCALID", "Slurm: rank on this host"},
    {"SLURM_STEP_NUM_NODES", "Slurm: hosts of the step; one host uses the loopback interface"},
    {"SLURM_STEP_NODELIST", "Slurm: hosts of the step; the first has rank 0"},
    {"SLURM_JOB_NODELIST", "Slurm: hosts of the job, where the step has no list"},
    {"SLURM_LAUNCH_NODE_IPADDR", "Slurm: where srun was called; the store's host without a list"},
    {"SLURM_JOB_ID", "Slurm: name of the job"},
    {"SLURM_STEP_ID", "Slurm: name of the step; without it this is no task of srun"},
    {"RIFFLE_STORE", "ours: HOST:PORT of the job's store, instead of what is derived above"},
    {"RIFFLE_STORE_BIND", "ours: address or interface on which rank 0 opens the store"},
    {"RIFFLE_INTERFACE", "ours: interface, or its address, for data between hosts"},
    {"RIFFLE_TRANSPORT", "ours: tcp or ucx, for data between hosts"},
    {"RIFFLE_TOKEN", "ours: the job's token, the same for all ranks; best 32 random characters"},
    {"RIFFLE_JOB", "ours: name of the job, instead of the launcher's"},
    {"RIFFLE_FAILURE_TIMEOUT", "ours: how long a rank may be silent, \"10s\", before it is failed"},
    {"RIFFLE_PROFILE", "ours: file for rank 0's trace, set by riffle profile"},
    {"RIFFLE_RACE", "ours: what a worker of riffle race shall do, a file of JSON"},
    {"RIFFLE_PROFILE_STEPS", "ours: how many steps it is measured over, 20 by default"},
    {"RIFFLE_LAUNCHER", "ours: set by a launcher that runs the store itself"},
    {"RIFFLE_MACHINE_RANKS", "ours: ranks that share this machine's cores, as a lab's hosts do"},
};

// Names become part of a socket's name and of keys.
std::string tidy(std::string_view name) {
  std::string text(name.substr(0, 60));
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
  return text;
}

// The same on every host and in every build (std::hash is neither).
std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

// Below the ports that Linux gives to outgoing connections.
int port_of(const std::string& job) {
  constexpr int first = 20'000;
  constexpr int count = 12'000;
  return first + static_cast<int>(stable_hash(job) % count);
}

void check_ranks(const engine::Found& found) {
  if (found.rank >= found.size)
    usage_error("{}={} must be less than {}={}; start all workers with the same number of workers",
                found.rank_variable, found.rank, found.size_variable, found.size);
  if (found.local_size > found.size)
    usage_error("{} ranks on this host, but {}={}; unset what another launcher has left over",
                found.local_size, found.size_variable, found.size);
  if (found.local_rank >= (found.local_size > 0 ? found.local_size : found.size))
    usage_error("local rank {} of {} ranks ({}={}, {}={}); unset what another launcher left over",
                found.local_rank, found.local_size > 0 ? found.local_size : found.size,
                found.rank_variable, found.rank, found.size_variable, found.size);
}

void check_host(std::string_view host) {
  const auto blank = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; };
  if (host.empty() || std::ranges::any_of(host, blank))
    usage_error(
        "{} is no host for the store; see MASTER_ADDR, RIFFLE_STORE and RIFFLE_STORE_BIND in the "
        "environment",
        quote(host));
}

StoreAddress store_of(const engine::Variables& get, const engine::Found& found,
                      const std::string& job) {
  if (const auto given = get.text("RIFFLE_STORE"))
    return parse_store_address(*given, "RIFFLE_STORE");
  if (found.master.empty())
    usage_error(
        "{} says {}={} but not where the ranks meet; set RIFFLE_STORE=HOST:PORT to rank 0's host "
        "and a free port there, the same for all ranks",
        found.launcher, found.size_variable, found.size);
  if (const auto port = get.number("MASTER_PORT", 1, 65535)) {
    // 29500 and 29501 are often two jobs; the same distance on the other side where there is none.
    constexpr int distance = 1000;
    return {found.master,
            static_cast<int>(*port) + (*port + distance > 65535 ? -distance : distance)};
  }
  if (found.job.empty() && !get.text("RIFFLE_JOB"))
    usage_error(
        "{} names neither a port nor the job; set RIFFLE_STORE=HOST:PORT, the same for all ranks",
        found.launcher);
  return {found.master, port_of(job)};
}

}  // namespace

std::span<const EnvironmentVariable> environment_variables() {
  return variables;
}

GetVariable process_environment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

std::optional<LaunchEnvironment> read_launch_environment(const GetVariable& getter) {
  const engine::Variables get(getter);
  const std::optional<engine::Found> found = engine::find_launcher(get);
  if (!found) return std::nullopt;
  check_ranks(*found);

  LaunchEnvironment result;
  result.launcher = tidy(get.text("RIFFLE_LAUNCHER").value_or(found->launcher));
  result.rank = static_cast<Rank>(found->rank);
  result.size = static_cast<int>(found->size);
  result.local_rank = static_cast<Rank>(found->local_rank);
  result.local_size = static_cast<int>(found->local_size);
  result.job =
      tidy(get.text("RIFFLE_JOB")
               .value_or(found->job.empty() ? fmt::format("{}-{}", found->launcher, found->master)
                                            : found->job));
  result.store = store_of(get, *found, result.job);
  result.serve_store = result.rank == 0 && !get.text("RIFFLE_LAUNCHER");
  result.bind = get.text("RIFFLE_STORE_BIND").value_or(result.store.host);
  result.interface = get.text("RIFFLE_INTERFACE").value_or("");
  result.transport = get.text("RIFFLE_TRANSPORT").value_or("");
  check_host(result.store.host);
  check_host(result.bind);

  const auto given = get.text("RIFFLE_TOKEN");
  result.token_is_secret = given || !found->secret.empty();
  result.token = given                   ? *given
                 : found->secret.empty() ? fmt::format("{}@{}", result.job, result.store.port)
                                         : found->secret;
  return result;
}

int ranks_on_machine(const GetVariable& getter) {
  constexpr std::int64_t most = 1 << 20;
  return static_cast<int>(
      engine::Variables(getter).number("RIFFLE_MACHINE_RANKS", 1, most).value_or(1));
}

std::optional<Seconds> read_failure_timeout(const GetVariable& getter) {
  constexpr std::string_view name = "RIFFLE_FAILURE_TIMEOUT";
  const auto text = engine::Variables(getter).text(name);
  if (!text) return std::nullopt;
  const Seconds time = parse_seconds(*text, fmt::format("environment variable {}", name));
  if (time < milliseconds(100) || time > std::chrono::hours(24))
    usage_error("environment variable {}={}: must be from 100ms to 86400s", name, *text);
  return time;
}

std::optional<ProfileRequest> read_profile_request(const GetVariable& getter) {
  constexpr std::int64_t most = 1'000'000;
  const engine::Variables get(getter);
  const auto file = get.text("RIFFLE_PROFILE");
  if (!file) return std::nullopt;
  ProfileRequest request{.file = *file};
  if (const auto steps = get.number("RIFFLE_PROFILE_STEPS", 1, most))
    request.steps = static_cast<int>(*steps);
  return request;
}

Seconds default_failure_timeout() {
  return read_failure_timeout(process_environment()).value_or(Seconds(10));
}

std::string print(const LaunchEnvironment& environment) {
  return fmt::format(
      "{} job {}: rank {} of {}, local rank {}{}, store {}{}{}", environment.launcher,
      environment.job, environment.rank, environment.size, environment.local_rank,
      environment.local_size > 0 ? fmt::format(" of {}", environment.local_size) : std::string(),
      print(environment.store), environment.serve_store ? " (runs here)" : "",
      environment.token_is_secret ? "" : ", no secret token");
}

}  // namespace riffle
