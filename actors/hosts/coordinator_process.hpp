#pragma once

#include "messages/cluster.pb.h"

namespace ringmaster {

/// Writes where this process runs into the identity of its coordinator.
void name_this_process(proto::ClusterIdentity& identity);

/// Kills the process of a coordinator that another one has replaced, if it still runs on this host, and waits up to a
/// second for its end. It may have been paused in the middle of moving data between the memories of this host's
/// devices, and would go on with that. A process that got its number since then is recognised by its start, and stays.
/// Returns whether it ran. If it cannot be killed, that is logged.
bool end_replaced_coordinator(const proto::ClusterIdentity& former);

} // namespace ringmaster
