#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

// MPICH's and Intel MPI's mpiexec (Hydra) gives its processes no name of the job. But its daemon on each host, which is
// an ancestor of the ranks there, is started with the address at which that mpiexec listens: the same on all hosts of a
// job, and another one for other jobs.

/// "head:40123/0", from the command line of such a daemon. None: it is of another program.
std::optional<std::string> hydra_job_in(const std::vector<std::string_view>& command_line);

/// Of this process's ancestors, as far as the system lets their command lines be read.
std::optional<std::string> hydra_job_of_ancestors();

} // namespace ringmaster
