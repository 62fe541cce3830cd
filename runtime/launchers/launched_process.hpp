#pragma once

#include "runtime/text/endpoint.hpp"

#include <caf/expected.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

/// A process that a launcher started as a rank.
struct launched_process {
  std::string launcher; ///< "caf-run", "torchrun", "Open MPI", "MPICH" or "SLURM".
  std::string job;      ///< The launcher's name of the job; empty if it has none.
  uint32_t rank = 0;
  uint32_t world_size = 1;
  uint32_t local_rank = 0; ///< Among the ranks of its host; `rank` if the launcher does not set it.
  endpoint coordinator;    ///< Where rank 0's process listens, or caf-run's coordinator.
  /// What named it: a variable, or "this host, where all ranks are taken to be".
  std::string coordinator_origin;
  bool coordinator_runs = false; ///< It runs already: caf-run started it.
  /// How long to wait for all ranks, if the launcher sets it: caf-run's --timeout, RINGMASTER_JOIN_TIMEOUT.
  std::optional<std::chrono::nanoseconds> join_limit = std::nullopt;
  /// Identifies the job, so that no rank joins the cluster of another job: "Open MPI job 1234". It is the same on all
  /// ranks. It consists of RINGMASTER_JOB, which caf-run sets, of the launcher's job and of MASTER_PORT; without these,
  /// of the launcher's name and the number of ranks. Empty if a running coordinator was named and no job is known.
  std::string identity;

  /// Whether this process must start the coordinator.
  bool hosts_coordinator() const { return rank == 0 && !coordinator_runs; }
};

/// The port of rank 0's coordinator if neither a variable nor the launcher's job name determines it.
struct coordinator_port {
  coordinator_port(uint16_t its_number, bool is_chosen = false) : number(its_number), chosen(is_chosen) {}

  uint16_t number;
  bool chosen; ///< By the user for this run: it takes precedence over the job's.
};

/// The value of an environment variable; none if it is not set.
using environment = std::function<std::optional<std::string>(const char* name)>;

/// Not a variable: `process_environment` returns `hydra_job_of_ancestors` for this name.
inline constexpr const char* hydra_job_variable = "HYDRA_JOB";

/// The environment of this process.
environment process_environment();

/// Reads the variables that launchers set. None if no launcher started this process, or if RINGMASTER_RANK is empty,
/// which declares it not to be a rank.
/// - The innermost launcher counts: under mpirun in a SLURM allocation that is mpirun. caf-run removes the variables of
///   launchers around it.
/// - The coordinator is at RINGMASTER_COORDINATOR ("host:port") or at MASTER_ADDR and MASTER_PORT, else on SLURM's
/// first
///   host, else on this host if all ranks are.
/// - Without a configured port, it is derived from the job's name, 20000 to 31999, since two jobs may share a host.
/// Errors: invalid_argument, with the variables that are missing or contradict each other.
caf::expected<std::optional<launched_process>> launched_process_of(const environment& variables,
                                                                   const coordinator_port& port);

/// The default name of the node of a rank's process: "rank-3", or "rank-3-of-JOB" for a launcher's job.
std::string node_name_of_rank(uint32_t rank, const std::string& job = {});

/// The variables with which launchers mark a process as a rank.
std::vector<std::string> rank_variables();

} // namespace ringmaster
