#include "engine/launchers.h"

#include <fmt/format.h>

#include "base/text.h"
#include "riffle/error.h"

namespace riffle::engine {

namespace {

constexpr std::int64_t max_ranks = 1 << 20;
constexpr std::string_view this_host = "127.0.0.1";

Found ranks(const Variables& get, std::string launcher, std::string_view rank,
            std::string_view size) {
  Found found;
  found.launcher = std::move(launcher);
  found.rank_variable = rank;
  found.size_variable = size;
  found.rank = get.needed(rank, size, 0, max_ranks);
  found.size = get.needed(size, rank, 1, max_ranks);
  return found;
}

// A host of rank 0 that the user names counts more than what is known otherwise.
void set_master(const Variables& get, Found& found, std::string otherwise) {
  found.master = get.text("MASTER_ADDR").value_or(std::move(otherwise));
}

std::optional<Found> torchrun(const Variables& get) {
  const bool rank = get.text("RANK").has_value();
  const bool size = get.text("WORLD_SIZE").has_value();
  // Batch systems use these two names for other things; both together are torchrun's.
  if (!rank && !size) return std::nullopt;
  if (rank != size && !get.text("MASTER_ADDR") && !get.text("LOCAL_RANK")) return std::nullopt;
  Found found = ranks(get, "torchrun", "RANK", "WORLD_SIZE");
  found.local_size = get.number("LOCAL_WORLD_SIZE", 1, max_ranks).value_or(0);
  found.local_rank = found.size == 1 ? get.number("LOCAL_RANK", 0, max_ranks).value_or(0)
                                     : get.needed("LOCAL_RANK", "RANK", 0, max_ranks);
  if (!get.text("RIFFLE_STORE") && found.size > 1) {
    if (!get.text("MASTER_ADDR"))
      usage_error(
          "RANK={} and WORLD_SIZE={} are set but MASTER_ADDR is not; start with torchrun, or set "
          "MASTER_ADDR and MASTER_PORT to rank 0's host and a free port there",
          found.rank, found.size);
    static_cast<void>(get.needed("MASTER_PORT", "MASTER_ADDR", 1, 65535));
  }
  set_master(get, found, found.size == 1 ? std::string(this_host) : std::string());
  // torchrun's own default for the name is "none": the port tells such jobs apart, and must not be
  // cut off behind a long name.
  found.job = fmt::format("{:.40}-{}-{}", get.text("TORCHELASTIC_RUN_ID").value_or("none"),
                          get.text("MASTER_PORT").value_or("0"),
                          get.text("TORCHELASTIC_RESTART_COUNT").value_or("0"));
  return found;
}

std::optional<Found> openmpi(const Variables& get) {
  if (!get.text("OMPI_COMM_WORLD_RANK") && !get.text("OMPI_COMM_WORLD_SIZE")) return std::nullopt;
  Found found = ranks(get, "openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  found.local_rank = get.needed("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK", 0, max_ranks);
  found.local_size = get.number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, max_ranks).value_or(0);
  set_master(get, found, found.local_size == found.size ? std::string(this_host) : std::string());
  found.job = get.text("PMIX_NAMESPACE").value_or("");
  found.secret = get.text("OMPI_MCA_orte_precondition_transports").value_or("");
  return found;
}

std::optional<Found> pmi(const Variables& get) {
  if (!get.text("PMI_RANK") && !get.text("PMI_SIZE")) return std::nullopt;
  // srun speaks PMI too, and says more in its own words.
  if (get.text("SLURM_STEP_ID") && get.text("SLURM_PROCID") == get.text("PMI_RANK"))
    return std::nullopt;
  Found found = ranks(get, "pmi", "PMI_RANK", "PMI_SIZE");
  found.local_size = get.number("MPI_LOCALNRANKS", 1, max_ranks).value_or(0);
  const bool one_host = found.local_size == found.size;
  found.local_rank =
      get.number("MPI_LOCALRANKID", 0, max_ranks).value_or(one_host ? found.rank : 0);
  set_master(get, found, one_host ? std::string(this_host) : std::string());
  found.job = get.text("PMI_JOBID").value_or("");
  return found;
}

std::optional<Found> slurm(const Variables& get) {
  // A batch script and salloc's shell have SLURM_PROCID=0 and SLURM_NTASKS, too, but are no tasks
  // of srun: they have no step, or one of the numbers that Slurm keeps for itself.
  constexpr std::int64_t reserved = 0xfffffff0;
  if (!get.text("SLURM_PROCID")) return std::nullopt;
  const auto step_id = get.number("SLURM_STEP_ID", 0, INT64_MAX);
  if (!step_id || *step_id >= reserved) return std::nullopt;
  const bool step = get.text("SLURM_STEP_NUM_TASKS").has_value();
  Found found = ranks(get, "slurm", "SLURM_PROCID", step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS");
  found.local_rank = get.needed("SLURM_LOCALID", "SLURM_PROCID", 0, max_ranks);
  const bool one_host = get.number("SLURM_STEP_NUM_NODES", 1, max_ranks) == 1;
  if (one_host) found.local_size = found.size;
  // The list's first host has rank 0. The launch node is where srun was called, which is that host
  // only in a batch script.
  std::string master;
  if (one_host)
    master = this_host;
  else if (const auto of_step = get.text("SLURM_STEP_NODELIST"))
    master = first_slurm_host(*of_step, "SLURM_STEP_NODELIST");
  else if (const auto of_job = get.text("SLURM_JOB_NODELIST"))
    master = first_slurm_host(*of_job, "SLURM_JOB_NODELIST");
  else
    master = get.text("SLURM_LAUNCH_NODE_IPADDR").value_or("");
  set_master(get, found, master);
  found.job = fmt::format("slurm-{}.{}", get.needed("SLURM_JOB_ID", "SLURM_PROCID", 0, INT64_MAX),
                          *step_id);
  return found;
}

}  // namespace

std::optional<std::string> Variables::text(std::string_view name) const {
  auto value = get_(name);
  return value && !value->empty() ? value : std::nullopt;
}

std::optional<std::int64_t> Variables::number(std::string_view name, std::int64_t least,
                                              std::int64_t most) const {
  const auto value = text(name);
  if (!value) return std::nullopt;
  const std::int64_t number = parse_integer(*value, fmt::format("environment variable {}", name));
  if (number < least || number > most)
    usage_error(
        "environment variable {}={}: must be from {} to {}; start the job anew, or unset it", name,
        number, least, most);
  return number;
}

std::int64_t Variables::needed(std::string_view name, std::string_view because, std::int64_t least,
                               std::int64_t most) const {
  const auto value = number(name, least, most);
  if (!value)
    usage_error(
        "environment variable {}={} is set but {} is not; set both as a launcher does, or neither",
        because, quote(text(because).value_or("")), name);
  return *value;
}

std::optional<Found> find_launcher(const Variables& get) {
  for (const auto launcher : {torchrun, openmpi, pmi, slurm})
    if (auto found = launcher(get)) return found;
  return std::nullopt;
}

std::string first_slurm_host(std::string_view list, std::string_view what) {
  const std::size_t end = list.find_first_of(",[");
  if (end == std::string_view::npos || list[end] == ',') {
    if (end == 0 || list.empty()) usage_error("{}={} is not a list of hosts", what, quote(list));
    return std::string(list.substr(0, end));
  }
  // "gpu[07-09,12]-ib,...": the first number of the first brackets, then what follows them; more
  // brackets may come.
  const std::size_t close = list.find(']', end);
  if (close == std::string_view::npos) usage_error("{}={}: '[' without ']'", what, quote(list));
  const std::string_view range = list.substr(end + 1, close - end - 1);
  const std::string_view first = range.substr(0, range.find_first_of("-,"));
  if (first.empty() || first.find_first_not_of("0123456789") != std::string_view::npos)
    usage_error("{}={}: {} is not a range of numbers", what, quote(list), quote(range));
  const std::string head = std::string(list.substr(0, end)) + std::string(first);
  const std::string_view rest = list.substr(close + 1);
  return rest.empty() || rest.front() == ',' ? head : head + first_slurm_host(rest, what);
}

}  // namespace riffle::engine
