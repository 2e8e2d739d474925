// Recorded environments of each launcher, and the ways in which they can be broken.
#include "riffle/launch_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "engine/launchers.h"
#include "refusal.h"
#include "riffle/make_engine.h"

namespace riffle {
namespace {

using Environment = std::map<std::string, std::string, std::less<>>;

std::optional<LaunchEnvironment> read(const Environment& variables) {
  return read_launch_environment([&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string said(const Environment& variables) {
  try {
    const auto result = read(variables);
    return result ? print(*result) : "alone";
  } catch (const UsageError& error) {
    return error.what();
  }
}

Environment with(Environment variables, const Environment& changes) {
  for (const auto& [name, value] : changes) variables.insert_or_assign(name, value);
  return variables;
}

Environment without(Environment variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

// torchrun --nnodes 2 --nproc-per-node 2 --rdzv-id 7 of torch 2.x, second host.
const Environment torchrun = {{"RANK", "3"},
                              {"WORLD_SIZE", "4"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"GROUP_RANK", "1"},
                              {"GROUP_WORLD_SIZE", "2"},
                              {"ROLE_RANK", "3"},
                              {"ROLE_NAME", "default"},
                              {"ROLE_WORLD_SIZE", "4"},
                              {"MASTER_ADDR", "node1"},
                              {"MASTER_PORT", "29500"},
                              {"TORCHELASTIC_RUN_ID", "7"},
                              {"TORCHELASTIC_RESTART_COUNT", "0"},
                              {"TORCHELASTIC_MAX_RESTARTS", "3"},
                              {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                              {"OMP_NUM_THREADS", "1"}};

// mpirun -n 2 of Open MPI 4.1.4 on one host.
const Environment openmpi = {
    {"OMPI_COMM_WORLD_RANK", "1"},
    {"OMPI_COMM_WORLD_SIZE", "2"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
    {"OMPI_COMM_WORLD_NODE_RANK", "1"},
    {"OMPI_MCA_orte_precondition_transports", "c459d16d47b3a610-f3ddc3c5b1be4b2f"},
    {"PMIX_NAMESPACE", "310181889"},
    {"PMIX_RANK", "1"},
    {"OMPI_UNIVERSE_SIZE", "2"}};

const Environment hydra = {
    {"PMI_RANK", "0"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}};

// srun -N 2 -n 8 inside sbatch.
const Environment slurm = {{"SLURM_PROCID", "5"},
                           {"SLURM_NTASKS", "8"},
                           {"SLURM_STEP_NUM_TASKS", "8"},
                           {"SLURM_STEP_NUM_NODES", "2"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_JOB_ID", "4711"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_STEP_NODELIST", "gpu[07-08]"},
                           {"SLURM_JOB_NODELIST", "gpu[07-09]"},
                           {"SLURM_LAUNCH_NODE_IPADDR", "10.1.2.3"},
                           {"PMI_RANK", "5"},
                           {"PMI_SIZE", "8"}};

// What sbatch gives a batch script itself.
const Environment batch = {{"SLURM_PROCID", "0"},
                           {"SLURM_NTASKS", "8"},
                           {"SLURM_LOCALID", "0"},
                           {"SLURM_JOB_ID", "4711"},
                           {"SLURM_JOB_NODELIST", "gpu[07-08]"}};

struct Case {
  const char* name;
  Environment variables;
  const char* expected;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

class Recognized : public testing::TestWithParam<Case> {};

TEST_P(Recognized, AsWhatItIs) {
  EXPECT_EQ(said(GetParam().variables), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    LaunchEnvironment, Recognized,
    testing::Values(
        Case{"nothing", {}, "alone"},
        Case{"torchrun", torchrun,
             "torchrun job 7-29500-0: rank 3 of 4, local rank 1 of 2, store node1:30500, no secret "
             "token"},
        Case{"torchrun_rank_0_with_token",
             with(torchrun, {{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"RIFFLE_TOKEN", "s"}}),
             "torchrun job 7-29500-0: rank 0 of 4, local rank 0 of 2, store node1:30500 (runs "
             "here)"},
        Case{"torchrun_high_port", with(torchrun, {{"MASTER_PORT", "65000"}}),
             "torchrun job 7-65000-0: rank 3 of 4, local rank 1 of 2, store node1:64000, no secret "
             "token"},
        Case{"torchrun_restarted", with(torchrun, {{"TORCHELASTIC_RESTART_COUNT", "2"}}),
             "torchrun job 7-29500-2: rank 3 of 4, local rank 1 of 2, store node1:30500, no secret "
             "token"},
        Case{"torchrun_own_store", with(torchrun, {{"RIFFLE_STORE", "[fd00::1]:9000"}}),
             "torchrun job 7-29500-0: rank 3 of 4, local rank 1 of 2, store [fd00::1]:9000, no "
             "secret token"},
        Case{"torchrun_inside_slurm", with(slurm, torchrun),
             "torchrun job 7-29500-0: rank 3 of 4, local rank 1 of 2, store node1:30500, no secret "
             "token"},
        Case{"riffle_launch",
             with(torchrun, {{"RANK", "0"},
                             {"RIFFLE_LAUNCHER", "riffle"},
                             {"RIFFLE_JOB", "riffle-99"},
                             {"RIFFLE_STORE", "127.0.0.1:4000"},
                             {"RIFFLE_TOKEN", "s"}}),
             "riffle job riffle-99: rank 0 of 4, local rank 1 of 2, store 127.0.0.1:4000"},
        Case{"size_one_without_master",
             {{"RANK", "0"}, {"WORLD_SIZE", "1"}},
             "torchrun job none-0-0: rank 0 of 1, local rank 0, store 127.0.0.1:30819 (runs here), "
             "no secret token"},
        Case{"rank_of_something_else", {{"RANK", "sergeant"}}, "alone"},
        Case{"openmpi_one_host", openmpi,
             "openmpi job 310181889: rank 1 of 2, local rank 1 of 2, store 127.0.0.1:27096"},
        Case{"openmpi_hosts_with_master",
             with(openmpi, {{"OMPI_COMM_WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}}),
             "openmpi job 310181889: rank 1 of 4, local rank 1 of 2, store node1:27096"},
        Case{"openmpi_inside_sbatch", with(batch, openmpi),
             "openmpi job 310181889: rank 1 of 2, local rank 1 of 2, store 127.0.0.1:27096"},
        Case{"pmi_with_store", with(hydra, {{"RIFFLE_STORE", "node1:9000"}}),
             "pmi job pmi-: rank 0 of 4, local rank 0 of 2, store node1:9000 (runs here), no "
             "secret token"},
        Case{"slurm", slurm,
             "slurm job slurm-4711.0: rank 5 of 8, local rank 1, store gpu07:26910, no secret "
             "token"},
        Case{"slurm_one_host", with(slurm, {{"SLURM_STEP_NUM_NODES", "1"}}),
             "slurm job slurm-4711.0: rank 5 of 8, local rank 1 of 8, store 127.0.0.1:26910, no "
             "secret token"},
        Case{"slurm_without_lists",
             without(without(slurm, "SLURM_STEP_NODELIST"), "SLURM_JOB_NODELIST"),
             "slurm job slurm-4711.0: rank 5 of 8, local rank 1, store 10.1.2.3:26910, no secret "
             "token"},
        Case{"slurm_batch_script_is_no_task", batch, "alone"},
        Case{"slurm_shell_of_salloc_is_no_task", with(batch, {{"SLURM_STEP_ID", "4294967290"}}),
             "alone"}),
    [](const auto& one) { return std::string(one.param.name); });

class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, NamesVariableValueAndTheWayOut) {
  EXPECT_THAT(said(GetParam().variables), testing::HasSubstr(GetParam().expected));
}

INSTANTIATE_TEST_SUITE_P(
    LaunchEnvironment, Refused,
    testing::Values(
        Case{"no_size", without(torchrun, "WORLD_SIZE"),
             "environment variable RANK='3' is set but WORLD_SIZE is not; set both"},
        Case{"no_rank", without(torchrun, "RANK"),
             "environment variable WORLD_SIZE='4' is set but RANK is not"},
        Case{"no_local_rank", without(torchrun, "LOCAL_RANK"), "LOCAL_RANK is not"},
        Case{"no_master", without(torchrun, "MASTER_ADDR"),
             "RANK=3 and WORLD_SIZE=4 are set but MASTER_ADDR is not; start with torchrun, or set"},
        Case{"no_port", without(torchrun, "MASTER_PORT"),
             "MASTER_ADDR='node1' is set but MASTER_PORT is not"},
        Case{"rank_beyond_size", with(torchrun, {{"RANK", "4"}}),
             "RANK=4 must be less than WORLD_SIZE=4"},
        Case{"rank_is_text", with(torchrun, {{"RANK", "three"}}),
             "environment variable RANK: 'three' is not a whole number"},
        Case{"rank_is_negative", with(torchrun, {{"RANK", "-1"}}), "RANK=-1: must be from 0"},
        Case{"size_is_zero", with(torchrun, {{"WORLD_SIZE", "0"}}), "WORLD_SIZE=0: must be from 1"},
        Case{"port_is_no_port", with(torchrun, {{"MASTER_PORT", "70000"}}),
             "MASTER_PORT=70000: must be from 1 to 65535"},
        Case{"local_beyond_size", with(torchrun, {{"LOCAL_WORLD_SIZE", "8"}}),
             "8 ranks on this host, but WORLD_SIZE=4"},
        Case{"local_rank_beyond", with(torchrun, {{"LOCAL_RANK", "2"}}), "local rank 2 of 2 ranks"},
        Case{"store_without_port", with(torchrun, {{"RIFFLE_STORE", "node1"}}),
             "RIFFLE_STORE 'node1' is not HOST:PORT"},
        Case{"host_with_blanks", with(torchrun, {{"MASTER_ADDR", "node 1"}}),
             "'node 1' is no host for the store; see MASTER_ADDR"},
        Case{"openmpi_hosts_without_master", with(openmpi, {{"OMPI_COMM_WORLD_SIZE", "4"}}),
             "openmpi says OMPI_COMM_WORLD_SIZE=4 but not where the ranks meet; set RIFFLE_STORE"},
        Case{"openmpi_half", without(openmpi, "OMPI_COMM_WORLD_SIZE"),
             "OMPI_COMM_WORLD_RANK='1' is set but OMPI_COMM_WORLD_SIZE is not"},
        Case{"pmi_without_store", hydra, "pmi says PMI_SIZE=4 but not where the ranks meet"},
        Case{"pmi_without_job", with(hydra, {{"MASTER_ADDR", "node1"}}),
             "pmi names neither a port nor the job; set RIFFLE_STORE"},
        Case{"slurm_half", without(slurm, "SLURM_LOCALID"), "SLURM_LOCALID is not"},
        Case{"slurm_bad_list", with(slurm, {{"SLURM_STEP_NODELIST", "gpu[07"}}),
             "SLURM_STEP_NODELIST='gpu[07': '[' without ']'"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(LaunchEnvironment, RanksOfAJobAgreeAndJobsDiffer) {
  const auto one = read(torchrun).value();
  const auto other = read(with(torchrun, {{"RANK", "0"}, {"LOCAL_RANK", "0"}})).value();
  EXPECT_EQ(one.job, other.job);
  EXPECT_EQ(one.store, other.store);
  EXPECT_EQ(one.token, other.token);
  EXPECT_EQ(one.bind, "node1");
  EXPECT_EQ(read(with(torchrun, {{"RIFFLE_STORE_BIND", "eth1"}}))->bind, "eth1");
  EXPECT_NE(read(with(torchrun, {{"MASTER_PORT", "29501"}}))->token, one.token);
  EXPECT_EQ(read(openmpi)->token, "c459d16d47b3a610-f3ddc3c5b1be4b2f");
  EXPECT_TRUE(read(openmpi)->token_is_secret);
  EXPECT_EQ(read(with(openmpi, {{"RIFFLE_TOKEN", "mine"}}))->token, "mine");
}

TEST(LaunchEnvironment, FirstHostOfASlurmList) {
  const std::map<std::string, std::string> lists = {
      {"node1", "node1"},
      {"node1,node2", "node1"},
      {"gpu[07-09,12]", "gpu07"},
      {"gpu[12,07-09],login", "gpu12"},
      {"rack[1-2]node[003-004]", "rack1node003"},
      {"n[5].example.org,m[1-2]", "n5.example.org"},
  };
  for (const auto& [list, first] : lists)
    EXPECT_EQ(engine::first_slurm_host(list, "L"), first) << list;
  for (const char* bad : {"", ",a", "a[", "a[]", "a[x-y]", "a[-3]"})
    EXPECT_THROW(engine::first_slurm_host(bad, "L"), UsageError) << bad;
}

TEST(LaunchEnvironment, EveryVariableIsInTheDocumentation) {
  std::ifstream file(RIFFLE_SOURCE_DIR "/docs/launching.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const EnvironmentVariable& variable : environment_variables())
    EXPECT_THAT(text.str(), testing::HasSubstr("`" + std::string(variable.name) + "`"));
}

// What is read is listed: the getter sees every name the code asks for.
TEST(LaunchEnvironment, NothingElseIsRead) {
  std::vector<std::string> known;
  for (const EnvironmentVariable& variable : environment_variables())
    known.emplace_back(variable.name);
  for (const Environment& variables : {Environment{}, torchrun, openmpi, hydra, slurm, batch}) try {
      read_launch_environment([&](std::string_view name) -> std::optional<std::string> {
        EXPECT_THAT(known, testing::Contains(std::string(name)));
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      });
    } catch (const UsageError&) {
      continue;  // hydra's names no place to meet
    }
}

std::optional<Seconds> failure_timeout(const std::string& text) {
  return read_failure_timeout([&](std::string_view name) {
    EXPECT_EQ(name, "RIFFLE_FAILURE_TIMEOUT");
    return std::optional(text);
  });
}

TEST(FailureTimeout, IsATimeWithItsUnit) {
  EXPECT_EQ(failure_timeout("30s"), Seconds(30));
  EXPECT_EQ(failure_timeout("100ms"), milliseconds(100));
  EXPECT_EQ(failure_timeout(""), std::nullopt);
}

TEST(FailureTimeout, ABadOneIsRefusedByName) {
  for (const char* bad :
       {"10", "10 minutes", "s", "-1s", "0s", "99ms", "86401s", "1e300s", "nan"}) {
    const std::string said = refusal([&] { (void)failure_timeout(bad); });
    EXPECT_THAT(said, testing::HasSubstr("RIFFLE_FAILURE_TIMEOUT")) << bad;
    EXPECT_THAT(said, testing::HasSubstr(bad)) << said;
  }
}

// Every engine's options take it from there.
TEST(FailureTimeout, IsTenSecondsUnlessTheEnvironmentSaysOtherwise) {
  unsetenv("RIFFLE_FAILURE_TIMEOUT");
  EXPECT_EQ(EngineOptions().failure_timeout, Seconds(10));
  setenv("RIFFLE_FAILURE_TIMEOUT", "3s", 1);
  EXPECT_EQ(ShmOptions().failure_timeout, Seconds(3));
  EXPECT_EQ(NetworkEngineOptions().failure_timeout, Seconds(3));
  setenv("RIFFLE_FAILURE_TIMEOUT", "soon", 1);
  EXPECT_THROW(LoopbackWorld(1), UsageError);
  unsetenv("RIFFLE_FAILURE_TIMEOUT");
}

TEST(JobStore, RankZeroServesAndTheOthersFindIt) {
  LaunchEnvironment environment = read(openmpi).value();
  environment.rank = 0;
  environment.serve_store = true;
  environment.store.port = 0;  // any, so that tests may run side by side
  const JobStore first = open_job_store(environment);
  environment.rank = 1;
  environment.serve_store = false;
  environment.store = first.server->address();
  const JobStore second = open_job_store(environment);
  EXPECT_FALSE(second.server);
  first.client->set("a", "x", after(Seconds(30)));
  EXPECT_EQ(second.client->wait("a", after(Seconds(30))), "x");
}

TEST(JobStore, ALoopbackAddressIsRefusedForSeveralHosts) {
  const auto rank0 = read(with(torchrun, {{"RANK", "0"}, {"MASTER_ADDR", "127.0.1.1"}})).value();
  try {
    open_job_store(rank0);
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("RIFFLE_STORE_BIND"));
  }
}

}  // namespace
}  // namespace riffle
