#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

// mpiexec of MPICH and Intel MPI (Hydra) gives its processes no job name. But its daemon on each host, an ancestor of
// the ranks there, is started with the address at which that mpiexec listens. The address is the same on all hosts of a
// job, and differs between jobs.

/// "head:40123/0", from the command line of such a daemon; none for another program.
std::optional<std::string> hydra_job_in(const std::vector<std::string_view>& command_line);

/// The job of this process's ancestors, if the system lets their command lines be read.
std::optional<std::string> hydra_job_of_ancestors();

} // namespace ringmaster
