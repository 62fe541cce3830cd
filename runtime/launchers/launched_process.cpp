#include "runtime/launchers/launched_process.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/launchers/hydra_job.hpp"
#include "runtime/launchers/slurm_hosts.hpp"
#include "runtime/text/own_address.hpp"
#include "runtime/text/quantity_parse.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <string_view>

namespace ringmaster {

namespace {

/// The variables that a launcher sets; an empty name means that it has no such variable.
struct known_launcher {
  const char* name;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_size;
  std::vector<const char*> jobs; ///< The first one that is set names the job.
};

const known_launcher launchers[] = {
  {"caf-run", "RINGMASTER_RANK", "RINGMASTER_WORLD_SIZE", "RINGMASTER_LOCAL_RANK", "", {}},
  {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", {"TORCHELASTIC_RUN_ID"}},
  {"Open MPI",
   "OMPI_COMM_WORLD_RANK",
   "OMPI_COMM_WORLD_SIZE",
   "OMPI_COMM_WORLD_LOCAL_RANK",
   "OMPI_COMM_WORLD_LOCAL_SIZE",
   {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
  // Cray's PALS and ALPS and Flux set the same variables.
  {"MPICH",
   "PMI_RANK",
   "PMI_SIZE",
   "MPI_LOCALRANKID",
   "MPI_LOCALNRANKS",
   {"PMI_JOBID", "PALS_APID", "ALPS_APP_ID", "FLUX_JOB_ID", hydra_job_variable}},
  {"SLURM", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", {"SLURM_JOB_ID"}},
};
const auto& torchrun = launchers[1];
const auto& slurm = launchers[4];

constexpr uint32_t ranks_max = 65'536;
constexpr auto default_coordinator_origin = "this host, where all ranks are taken to be";

caf::error wrong(std::string text) {
  return invalid(std::move(text));
}

/// An empty variable counts as not set.
std::string value_of(const environment& variables, const char* name) {
  return *name == '\0' ? std::string{} : variables(name).value_or("");
}

/// The first of these that is set, or null.
const char* first_set(const environment& variables, const std::vector<const char*>& names) {
  for (auto name : names)
    if (!value_of(variables, name).empty())
      return name;
  return nullptr;
}

caf::expected<uint32_t> number_in(const environment& variables, const char* name, uint64_t min, uint64_t max) {
  auto number = parse_whole(value_of(variables, name), min, max);
  if (!number)
    return wrong(fmt::format("{}: {}", name, render(number.error())));
  return static_cast<uint32_t>(*number);
}

/// SLURM sets its variables in a batch script too, which is not a task of srun.
bool in_batch_script(const environment& variables) {
  return first_set(variables, {"SLURM_JOB_ID"}) && !first_set(variables, {"SLURM_STEP_ID", "SLURM_STEPID"});
}

const known_launcher* launcher_of(const environment& variables) {
  for (auto& x : launchers)
    if (first_set(variables, {x.rank}) && (&x != &slurm || !in_batch_script(variables)))
      return &x;
  return nullptr;
}

/// An error for a size without a rank, except for SLURM, whose allocations have a size before a task is started.
caf::error rank_missing(const environment& variables) {
  for (auto& x : launchers)
    if (&x != &slurm && first_set(variables, {x.world_size}))
      return wrong(fmt::format("{} is {}, and {} is not set, which says which rank this process is", x.world_size,
                               value_of(variables, x.world_size), x.rank));
  return {};
}

/// The number of ranks on this host; 0: unknown.
caf::expected<uint32_t> local_size(const environment& variables, const known_launcher& launcher, uint32_t world_size) {
  if (!first_set(variables, {launcher.local_size}))
    return uint32_t{0};
  return number_in(variables, launcher.local_size, 1, world_size);
}

/// Fills in rank, local rank and world size.
caf::error read_ranks(const environment& variables, const known_launcher& launcher, launched_process& result) {
  auto step_size = &launcher == &slurm ? first_set(variables, {"SLURM_STEP_NUM_TASKS"}) : nullptr;
  auto size_name = step_size != nullptr ? step_size : launcher.world_size;
  if (!first_set(variables, {size_name}))
    return wrong(fmt::format("{} is {}, and {} is not set, which says how many ranks there are", launcher.rank,
                             value_of(variables, launcher.rank), size_name));
  TRY(size, number_in(variables, size_name, 1, ranks_max));
  TRY(rank, number_in(variables, launcher.rank, 0, ranks_max));
  if (*rank >= *size)
    return wrong(fmt::format("{} is {}, but {} is {}: ranks are counted from 0", launcher.rank, *rank, size_name,
                             *size));
  result.rank = result.local_rank = *rank;
  result.world_size = *size;
  if (auto name = first_set(variables, {launcher.local_rank, slurm.local_rank})) {
    TRY(local, number_in(variables, name, 0, *size - 1));
    result.local_rank = *local;
  }
  TRY(here, local_size(variables, launcher, *size));
  if (*here != 0 && result.local_rank >= *here)
    return wrong(fmt::format("{} is {}, but {} is {}: local ranks are counted from 0", launcher.local_rank,
                             result.local_rank, launcher.local_size, *here));
  return {};
}

/// Whether torchrun's own store listens at MASTER_PORT.
bool is_master_port_taken(const environment& variables) {
  return value_of(variables, "TORCHELASTIC_USE_AGENT_STORE") == "True";
}

/// Rank 0's host according to the launcher's variables; empty: unknown.
caf::expected<std::string> first_host(const environment& variables, const known_launcher& launcher,
                                      launched_process& result) {
  TRY(here, local_size(variables, launcher, result.world_size));
  result.coordinator_origin = default_coordinator_origin;
  if (*here == result.world_size)
    return loopback_address();
  if (auto list = first_set(variables, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"})) {
    auto hosts = slurm_hosts(value_of(variables, list));
    if (!hosts)
      return wrong(fmt::format("{}: {}", list, render(hosts.error())));
    result.coordinator_origin = list;
    return hosts->size() == 1 ? loopback_address() : hosts->front();
  }
  if (auto address = first_set(variables, {"SLURM_LAUNCH_NODE_IPADDR"}); address && &launcher == &slurm) {
    result.coordinator_origin = address;
    return value_of(variables, address);
  }
  return *here == 0 ? loopback_address() : std::string{};
}

/// The launcher's name of the job, with SLURM's step. torchrun's "none" is no name.
std::string job_of(const environment& variables, const known_launcher& launcher) {
  const auto* name = first_set(variables, launcher.jobs);
  auto result = name == nullptr ? std::string{} : value_of(variables, name);
  if (auto step = first_set(variables, {"SLURM_STEP_ID", "SLURM_STEPID"});
      step && &launcher == &slurm && !result.empty())
    result += "." + value_of(variables, step);
  return result == "none" ? "" : result;
}

/// The same on all ranks, and different for most other jobs. Below 32768, where the system's ephemeral ports start.
uint16_t port_of(const std::string& job) {
  constexpr uint32_t lowest = 20'000, count = 12'000;
  uint32_t hash = 2166136261u; // FNV-1a: the same on all hosts
  for (auto x : job)
    hash = (hash ^ static_cast<unsigned char>(x)) * 16777619u;
  static_assert(lowest + count <= 32'768, "ephemeral ports are left to the system");
  return static_cast<uint16_t>(lowest + hash % count);
}

/// See launched_process::identity.
std::string identity_of(const environment& variables, const known_launcher& launcher, const launched_process& its) {
  const auto given = value_of(variables, "RINGMASTER_JOB");
  if (its.coordinator_runs)
    return given;
  std::vector<std::string> parts;
  if (!given.empty())
    parts.push_back(given);
  if (!its.job.empty())
    parts.push_back(fmt::format("{} job {}", its.launcher, its.job));
  else
    parts.push_back(its.launcher);
  if (const auto* port = first_set(variables, {"MASTER_PORT"});
      port != nullptr && (its.job.empty() || &launcher == &torchrun)) // since users choose the names of torchrun's jobs
    parts.push_back(fmt::format("{} {}", port, value_of(variables, port)));
  if (parts.size() == 1 && its.job.empty())
    parts.push_back(fmt::format("{} ranks of a job without a name", its.world_size));
  return fmt::format("{}", fmt::join(parts, ", "));
}

caf::error read_coordinator(const environment& variables, const known_launcher& launcher, const coordinator_port& port,
                            launched_process& result) {
  if (auto name = first_set(variables, {"RINGMASTER_COORDINATOR"})) {
    auto where = parse_endpoint(value_of(variables, name));
    if (!where)
      return wrong(fmt::format("{}: {}", name, render(where.error())));
    result.coordinator = std::move(*where);
    result.coordinator_origin = name;
    result.coordinator_runs = &launcher == &launchers[0]
                              || value_of(variables, "RINGMASTER_RUNNING_COORDINATOR") == value_of(variables, name);
    return {};
  }
  if (&launcher == &launchers[0])
    return wrong(fmt::format("{} is set, and RINGMASTER_COORDINATOR is not, which says where the coordinator is",
                             launcher.rank));
  result.coordinator.port = port.chosen || result.job.empty() ? port.number : port_of(result.job);
  if (auto name = first_set(variables, {"MASTER_PORT"}); name && !is_master_port_taken(variables)) {
    TRY(chosen, number_in(variables, name, 1, 65'535));
    result.coordinator.port = static_cast<uint16_t>(*chosen);
  }
  if (auto name = first_set(variables, {"MASTER_ADDR"})) {
    result.coordinator.host = without_brackets(value_of(variables, name));
    result.coordinator_origin = name;
    return {};
  }
  TRY(host, first_host(variables, launcher, result));
  if (host->empty())
    return wrong(fmt::format(
      "{} ranks on several hosts ({} says that {} are here), and no variable says which host has rank 0: "
      "set MASTER_ADDR to that host, and MASTER_PORT unless it is {}; or "
      "RINGMASTER_COORDINATOR=HOST:PORT",
      result.world_size, launcher.local_size, value_of(variables, launcher.local_size), result.coordinator.port));
  result.coordinator.host = std::move(*host);
  return {};
}

} // namespace

std::string node_name_of_rank(uint32_t rank, const std::string& job) {
  return job.empty() ? fmt::format("rank-{}", rank) : fmt::format("rank-{}-of-{}", rank, job);
}

std::vector<std::string> rank_variables() {
  std::vector<std::string> result;
  for (auto& x : launchers) {
    result.push_back(x.rank);
    if (&x != &slurm) // its size is the allocation's, which srun reads
      result.push_back(x.world_size);
  }
  return result;
}

environment process_environment() {
  return [](const char* name) {
    auto value = std::getenv(name);
    if (value == nullptr && name == std::string_view{hydra_job_variable})
      return hydra_job_of_ancestors();
    return value == nullptr ? std::nullopt : std::optional<std::string>{value};
  };
}

caf::expected<std::optional<launched_process>> launched_process_of(const environment& variables,
                                                                   const coordinator_port& port) {
  if (variables("RINGMASTER_RANK") == "")
    return std::optional<launched_process>{};
  auto launcher = launcher_of(variables);
  if (launcher == nullptr) {
    RETURN_ERROR(rank_missing(variables));
    return std::optional<launched_process>{};
  }
  launched_process result;
  result.launcher = launcher->name;
  result.job = job_of(variables, *launcher);
  RETURN_ERROR(read_ranks(variables, *launcher, result));
  RETURN_ERROR(read_coordinator(variables, *launcher, port, result));
  ensure(result.rank < result.world_size && result.local_rank < result.world_size, "ranks are counted from 0");
  result.identity = identity_of(variables, *launcher, result);
  if (auto name = first_set(variables, {"RINGMASTER_JOIN_TIMEOUT"})) {
    auto limit = parse_duration_ps(value_of(variables, name));
    if (!limit || *limit < 1000)
      return wrong(fmt::format("{} is \"{}\"; it must be a duration such as 30s", name, value_of(variables, name)));
    result.join_limit = std::chrono::nanoseconds{*limit / 1000};
  }
  return std::optional{std::move(result)};
}

} // namespace ringmaster
