#include "tools/cluster/joined_call.hpp"

#include "actors/configuration/settings.hpp"
#include "messages/try.hpp"
#include "runtime/logging/log.hpp"
#include "tools/clients/cluster_connection.hpp"

namespace ringmaster {

void joined_call::timeout_option(option_table& table) {
  key_option(table, "--timeout", "node.join-timeout")
    .says("T", "how long to wait for the coordinator's answer, such as 30s");
}

caf::expected<int> joined_call::run(const console& to) {
  start_log(cfg_.values());
  caf::actor_system system{cfg_};
  TRY(host, coordinator_for(command_, system, cfg_.values(), to.err));
  client user{system, *host};
  return run_with(user, to);
}

} // namespace ringmaster
