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

/// One process among those that a launcher has started together, each of which is a rank.
struct launched_process {
  std::string launcher; ///< "caf-run", "torchrun", "Open MPI", "MPICH" or "SLURM".
  std::string job;      ///< By which the launcher tells its runs apart; empty: it does not say.
  uint32_t rank = 0;
  uint32_t world_size = 1;
  uint32_t local_rank = 0; ///< Among those of its host; the rank, where the launcher does not say.
  endpoint coordinator;    ///< Rank 0's process listens there; under caf-run it is there already.
  /// Who has said so: a variable's name, or "this host, which nobody has denied".
  std::string coordinator_origin;
  bool coordinator_runs = false; ///< It is there already: caf-run's.
  /// How long the ranks may take to come, where the launcher says so: caf-run's --timeout, RINGMASTER_JOIN_TIMEOUT.
  std::optional<std::chrono::nanoseconds> join_limit = std::nullopt;
  /// Of the job: the same on all of its ranks, and another one for other jobs, so that no rank joins a foreign cluster.
  /// In words: "Open MPI job 1234". It is made of RINGMASTER_JOB, which caf-run sets, or of what the launcher says: its
  /// job, MASTER_PORT; where it says nothing, of its name and the number of ranks. Empty: a coordinator that runs
  /// already was named for this process, and nothing says which job is its.
  std::string identity;

  /// Whether this process has to start the coordinator, so that the others find it.
  bool hosts_coordinator() const { return rank == 0 && !coordinator_runs; }
};

/// The port of rank 0's coordinator where neither a variable nor the launcher's name of the job says one.
struct coordinator_port {
  coordinator_port(uint16_t its_number, bool is_chosen = false) : number(its_number), chosen(is_chosen) {}

  uint16_t number;
  bool chosen; ///< By somebody, for this run: it goes before the job's.
};

/// The value of an environment variable; none where it is not set. See `process_environment`.
using environment = std::function<std::optional<std::string>(const char* name)>;

/// The name under which `process_environment` has `hydra_job_of_ancestors`, which no variable says.
inline constexpr const char* hydra_job_variable = "HYDRA_JOB";

/// That of this process.
environment process_environment();

/// What the environment says. None: no launcher has started this process, or the variable RINGMASTER_RANK is empty,
/// which says that it is no rank, whatever launchers have set. The launchers are asked from the innermost out: under
/// mpirun in a SLURM allocation, mpirun counts; caf-run's program has no variables of those around caf-run. The port is
/// drawn from the launcher's name of the job, 20000 to 31999, since two jobs may share a host. Rank 0 is where
/// RINGMASTER_COORDINATOR ("host:port") or MASTER_ADDR and MASTER_PORT say, else on SLURM's first host, else here if
/// all ranks are. Errors: invalid_argument, with the variables that are missing or contradict each other.
caf::expected<std::optional<launched_process>> launched_process_of(const environment& variables,
                                                                   const coordinator_port& port);

/// As which node a rank's process joins, where nobody names it otherwise: "rank-3", or of a launcher's job
/// "rank-3-of-JOB".
std::string node_name_of_rank(uint32_t rank, const std::string& job = {});

/// The variables by which launchers say that a process is one of their ranks.
std::vector<std::string> rank_variables();

} // namespace ringmaster
