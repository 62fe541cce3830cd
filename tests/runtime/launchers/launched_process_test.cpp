#include "runtime/launchers/launched_process.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <map>

using namespace ringmaster;

namespace {

using settings = std::map<std::string, std::string>;

caf::expected<std::optional<launched_process>> read(const settings& variables) {
  return launched_process_of(
    [&](const char* name) {
      auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional{found->second};
    },
    7077);
}

uint16_t port_of_rank_0(const settings& variables) {
  return (*read(variables))->coordinator.port;
}

/// "mpirun 1/4 local 1, 127.0.0.1:7077", an error, or "no rank".
std::string told(const settings& variables) {
  auto result = read(variables);
  if (!result)
    return render(result.error());
  if (!*result)
    return "no rank";
  auto& x = **result;
  return fmt::format("{} {}/{} local {}, {}:{}", x.launcher, x.rank, x.world_size, x.local_rank, x.coordinator.host,
                     x.coordinator.port);
}

settings with(settings base, const settings& more) {
  for (auto& [name, value] : more)
    base[name] = value;
  return base;
}

settings without(settings base, const std::string& name) {
  base.erase(name);
  return base;
}

const settings caf_run{{"RINGMASTER_RANK", "2"},
                       {"RINGMASTER_WORLD_SIZE", "4"},
                       {"RINGMASTER_LOCAL_RANK", "1"},
                       {"RINGMASTER_COORDINATOR", "10.0.0.1:4711"}};
const settings torchrun{{"RANK", "5"},
                        {"WORLD_SIZE", "8"},
                        {"LOCAL_RANK", "1"},
                        {"LOCAL_WORLD_SIZE", "4"},
                        {"MASTER_ADDR", "alpha"},
                        {"MASTER_PORT", "29500"}};
const settings open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                        {"OMPI_COMM_WORLD_SIZE", "2"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const settings mpich{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "3"}, {"MPI_LOCALNRANKS", "4"}};
const settings srun{{"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"},
                    {"SLURM_PROCID", "3"},  {"SLURM_NTASKS", "4"},
                    {"SLURM_LOCALID", "1"}, {"SLURM_STEP_NODELIST", "n[07-08]"},
                    {"SLURM_NNODES", "2"},  {"SLURM_JOB_NODELIST", "n[01-09]"}};

} // namespace

TEST_CASE("launched_process: each launcher's variables give rank, sizes and coordinator") {
  CHECK(told({}) == "no rank");
  CHECK(told(caf_run) == "caf-run 2/4 local 1, 10.0.0.1:4711");
  CHECK(told(torchrun) == "torchrun 5/8 local 1, alpha:29500");
  CHECK(told(open_mpi) == "Open MPI 1/2 local 1, 127.0.0.1:7077");
  CHECK(told(mpich) == "MPICH 3/4 local 3, 127.0.0.1:7077");
  CHECK(told(srun) == fmt::format("SLURM 3/4 local 1, n07:{}", port_of_rank_0(srun)));
}

TEST_CASE("launched_process: rank 0 hosts the coordinator, except under caf-run") {
  auto hosts = [](const settings& x) { return (*read(x))->hosts_coordinator(); };
  CHECK_FALSE(hosts(with(caf_run, {{"RINGMASTER_RANK", "0"}})));
  CHECK_FALSE(hosts(open_mpi));
  CHECK(hosts(with(open_mpi, {{"OMPI_COMM_WORLD_RANK", "0"}})));
  CHECK(hosts(with(srun, {{"SLURM_PROCID", "0"}})));
}

TEST_CASE("launched_process: the innermost launcher counts") {
  CHECK(told(with(srun, open_mpi)) == "Open MPI 1/2 local 1, 127.0.0.1:7077");
  CHECK(told(with(with(srun, mpich), torchrun)) == "torchrun 5/8 local 1, alpha:29500");
  CHECK(told(with(torchrun, caf_run)) == "caf-run 2/4 local 1, 10.0.0.1:4711");
  CHECK(told(with(srun, {{"RINGMASTER_RANK", ""}})) == "no rank");
}

TEST_CASE("launched_process: under a launcher within caf-run's program, ranks go to caf-run's coordinator") {
  auto within = with(open_mpi, {{"OMPI_COMM_WORLD_RANK", "0"},
                                {"RINGMASTER_COORDINATOR", "127.0.0.1:4711"},
                                {"RINGMASTER_RUNNING_COORDINATOR", "127.0.0.1:4711"}});
  CHECK(told(within) == "Open MPI 0/2 local 1, 127.0.0.1:4711");
  CHECK_FALSE((*read(within))->hosts_coordinator());
  CHECK((*read(with(within, {{"RINGMASTER_COORDINATOR", "alpha:5"}})))->hosts_coordinator()); // the user's own
  auto around = with(with(with(torchrun, open_mpi), with(mpich, srun)), caf_run);
  for (auto& name : rank_variables())
    around.erase(name);
  CHECK(told(around) == "no rank");
}

TEST_CASE("launched_process: two jobs on one host have different ports, the ranks of a job the same") {
  auto job = [](std::string name) { return with(open_mpi, {{"PMIX_NAMESPACE", std::move(name)}}); };
  auto port = port_of_rank_0(job("123@1"));
  CHECK(port >= 20'000);
  CHECK(port < 32'000);
  CHECK(port_of_rank_0(with(job("123@1"), {{"OMPI_COMM_WORLD_RANK", "0"}})) == port);
  CHECK(port_of_rank_0(job("124@1")) != port);
  CHECK(port_of_rank_0(with(srun, {{"SLURM_STEP_ID", "1"}})) != port_of_rank_0(srun));
  CHECK(port_of_rank_0(with(job("123@1"), {{"MASTER_PORT", "9"}})) == 9);
  CHECK(port_of_rank_0(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RUN_ID", "none"}}))
        == 7077);
  auto chosen = launched_process_of(
    [x = job("123@1")](const char* name) {
      auto found = x.find(name);
      return found == x.end() ? std::nullopt : std::optional{found->second};
    },
    {7078, true});
  CHECK((*chosen)->coordinator.port == 7078);
}

namespace {

std::string identity_of(const settings& variables) {
  return (*read(variables))->identity;
}

} // namespace

TEST_CASE("launched_process: a job has the same identity on all of its ranks, and jobs differ") {
  CHECK(identity_of(with(torchrun, {{"TORCHELASTIC_RUN_ID", "a"}})) == "torchrun job a, MASTER_PORT 29500");
  CHECK(identity_of(with(torchrun, {{"TORCHELASTIC_RUN_ID", "none"}})) == "torchrun, MASTER_PORT 29500");
  CHECK(identity_of(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}})) == "torchrun, MASTER_PORT 29500");
  CHECK(identity_of(with(open_mpi, {{"PMIX_NAMESPACE", "123@1"}})) == "Open MPI job 123@1");
  CHECK(identity_of(with(open_mpi, {{"PMIX_NAMESPACE", "123@1"}, {"MASTER_PORT", "9"}})) == "Open MPI job 123@1");
  CHECK(identity_of(with(open_mpi, {{"OMPI_MCA_ess_base_jobid", "77"}})) == "Open MPI job 77");
  CHECK(identity_of(srun) == "SLURM job 77.0");
  for (auto name : {"PMI_JOBID", "PALS_APID", "ALPS_APP_ID", "FLUX_JOB_ID", hydra_job_variable})
    CHECK(identity_of(with(mpich, {{name, "head:4"}})) == "MPICH job head:4");
  for (auto& each : {torchrun, open_mpi, mpich, srun})
    for (auto rank : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"})
      if (each.count(rank) != 0)
        CHECK(identity_of(with(each, {{rank, "0"}})) == identity_of(each));
}

TEST_CASE("launched_process: a job without a name is identified by its number of ranks") {
  CHECK(identity_of(open_mpi) == "Open MPI, 2 ranks of a job without a name");
  CHECK(identity_of(mpich) == "MPICH, 4 ranks of a job without a name");
  CHECK(identity_of(with(mpich, {{"MASTER_PORT", "9"}})) == "MPICH, MASTER_PORT 9");
  CHECK(identity_of(with(mpich, {{"RINGMASTER_JOB", "mine"}})) == "mine, MPICH");
}

TEST_CASE("launched_process: a running coordinator's job is the one named with it") {
  CHECK(identity_of(caf_run) == "");
  CHECK(identity_of(with(caf_run, {{"RINGMASTER_JOB", "caf-run 1 on head"}})) == "caf-run 1 on head");
  const auto within = with(open_mpi, {{"PMIX_NAMESPACE", "123@1"},
                                      {"RINGMASTER_COORDINATOR", "127.0.0.1:4711"},
                                      {"RINGMASTER_RUNNING_COORDINATOR", "127.0.0.1:4711"}});
  CHECK(identity_of(within) == "");
  CHECK(identity_of(with(within, {{"RINGMASTER_JOB", "caf-run 1 on head"}})) == "caf-run 1 on head");
  CHECK(identity_of(with(within, {{"RINGMASTER_COORDINATOR", "alpha:5"}})) == "Open MPI job 123@1");
}

TEST_CASE("launched_process: IPv6 addresses may have brackets") {
  CHECK(told(with(torchrun, {{"MASTER_ADDR", "::1"}})) == "torchrun 5/8 local 1, ::1:29500");
  CHECK(told(with(torchrun, {{"MASTER_ADDR", "[fd00::7]"}})) == "torchrun 5/8 local 1, fd00::7:29500");
  CHECK(told(with(caf_run, {{"RINGMASTER_COORDINATOR", "::1:5"}})).find("is written in brackets: \"[::1]:5\"")
        != std::string::npos);
}

TEST_CASE("launched_process: the user's settings take precedence") {
  CHECK(told(with(open_mpi, {{"MASTER_ADDR", "beta"}})) == "Open MPI 1/2 local 1, beta:7077");
  CHECK(told(with(open_mpi, {{"MASTER_PORT", "9"}})) == "Open MPI 1/2 local 1, 127.0.0.1:9");
  CHECK(told(with(torchrun, {{"RINGMASTER_COORDINATOR", "[::1]:5"}})) == "torchrun 5/8 local 1, ::1:5");
  CHECK(told(with(srun, {{"MASTER_ADDR", "beta"}, {"MASTER_PORT", "9"}})) == "SLURM 3/4 local 1, beta:9");
  // torchrun's own store has that port
  CHECK(told(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}})) == "torchrun 5/8 local 1, alpha:7077");
}

TEST_CASE("launched_process: SLURM's batch scripts and empty allocations are no tasks") {
  const auto port = port_of_rank_0(srun);
  CHECK(told(without(srun, "SLURM_STEP_ID")) == "no rank");
  CHECK(told(without(srun, "SLURM_PROCID")) == "no rank");
  CHECK(told(with(srun, {{"SLURM_STEP_NODELIST", "n3"}})) == fmt::format("SLURM 3/4 local 1, 127.0.0.1:{}", port));
  CHECK(told(without(srun, "SLURM_STEP_NODELIST")) == fmt::format("SLURM 3/4 local 1, n01:{}", port));
  CHECK(told(with(srun, {{"SLURM_STEP_NUM_TASKS", "9"}})) == fmt::format("SLURM 3/9 local 1, n07:{}", port));
  CHECK(told({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"}})
        == "SLURM 0/2 local 0, 10.0.0.9:7077");
  auto spread = with(with(srun, mpich), {{"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  CHECK(told(spread) == "MPICH 3/4 local 1, n07:7077");
}

TEST_CASE("launched_process: names missing variables") {
  CHECK(told(without(torchrun, "WORLD_SIZE"))
        == "RANK is 5, and WORLD_SIZE is not set, which says how many ranks there are");
  CHECK(told(without(torchrun, "RANK"))
        == "WORLD_SIZE is 8, and RANK is not set, which says which rank this process is");
  CHECK(told(without(caf_run, "RINGMASTER_COORDINATOR"))
        == "RINGMASTER_RANK is set, and RINGMASTER_COORDINATOR is not, which says where the coordinator is");
  CHECK(told(without(without(torchrun, "MASTER_ADDR"), "MASTER_PORT"))
        == "8 ranks on several hosts (LOCAL_WORLD_SIZE says that 4 are here), and no variable says which host has rank "
           "0: set "
           "MASTER_ADDR to that host, and MASTER_PORT unless it is 7077; or RINGMASTER_COORDINATOR=HOST:PORT");
}

TEST_CASE("launched_process: names contradictory and impossible variables") {
  CHECK(told(with(open_mpi, {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}}))
        == "OMPI_COMM_WORLD_RANK is 2, but OMPI_COMM_WORLD_SIZE is 2: ranks are counted from 0");
  CHECK(told(with(torchrun, {{"LOCAL_RANK", "4"}}))
        == "LOCAL_RANK is 4, but LOCAL_WORLD_SIZE is 4: local ranks are counted from 0");
  CHECK(told(with(mpich, {{"PMI_SIZE", "many"}})) == "PMI_SIZE: \"many\" is not an integer from 1 to 65536");
  CHECK(told(with(mpich, {{"MPI_LOCALNRANKS", "5"}})) == "MPI_LOCALNRANKS: \"5\" is not an integer from 1 to 4");
  CHECK(told(with(torchrun, {{"MASTER_PORT", "0"}})) == "MASTER_PORT: \"0\" is not an integer from 1 to 65535");
  CHECK(told(with(srun, {{"SLURM_STEP_NODELIST", "n[1"}}))
        == "SLURM_STEP_NODELIST: \"n[1\" is no SLURM list of hosts: a '[' without its ']'");
  CHECK(
    told(with(caf_run, {{"RINGMASTER_COORDINATOR", "here"}})).find("RINGMASTER_COORDINATOR: \"here\" is no endpoint")
    == 0);
}
