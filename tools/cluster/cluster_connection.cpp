#include "tools/cluster/cluster_connection.hpp"

#include "client/cluster.hpp"
#include "messages/errc.hpp"

#include <fmt/format.h>

namespace ringmaster {

caf::expected<coordinator_actor> coordinator_for(const char* command, caf::actor_system& system, const options& opts) {
  auto where = coordinator_elsewhere(opts);
  if (where.empty())
    return make_error(errc::invalid_argument,
                      fmt::format("which cluster? {} --join HOST:PORT, or RINGMASTER_COORDINATOR=HOST:PORT in the "
                                  "environment, which caf-run sets",
                                  command));
  return connect(system, where, opts.node.join_timeout);
}

} // namespace ringmaster
