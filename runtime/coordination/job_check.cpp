#include "runtime/coordination/job_check.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

namespace ringmaster {

caf::error check_job(const std::string& who, const std::string& theirs, const std::string& ours) {
  if (theirs.empty() || theirs == ours)
    return caf::none;
  return make_error(
    errc::refused,
    fmt::format("{} belongs to the job \"{}\", and the coordinator that it has found {}: ranks join no other job. Give "
                "this job a port of its own, the same on all of its ranks: MASTER_PORT=PORT, or "
                "RINGMASTER_COORDINATOR=HOST:PORT; to join that coordinator, set RINGMASTER_RUNNING_COORDINATOR to the "
                "same HOST:PORT as well",
                who, theirs, ours.empty() ? "serves no launcher's job" : fmt::format("serves the job \"{}\"", ours)));
}

} // namespace ringmaster
