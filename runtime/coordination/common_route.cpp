#include "runtime/coordination/common_route.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

namespace ringmaster {

caf::error check_route(const std::string& who, const std::string& theirs, const std::string& clusters) {
  if (theirs.empty() || theirs == "auto" || theirs == clusters)
    return caf::none;
  return make_error(
    errc::invalid_argument,
    fmt::format("{} has route.use \"{}\", and the coordinator that it goes to \"{}\", which is the whole "
                "cluster's: leave it out here, or start the coordinator with --route.use={} (caf-run: "
                "in the file of --conf)",
                who, theirs, clusters, theirs));
}

} // namespace ringmaster
