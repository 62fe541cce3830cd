#pragma once

#include "gateway/http/metrics/metric_page.hpp"
#include "gateway/http/state/status_json.hpp"
#include "gateway/http/state/training_runs.hpp"
#include "messages/status.pb.h"

namespace ringmaster::gateway {

/// What the cluster is doing: devices, communicators, queues, suspicion, bytes by route, lag of the journal.
void write_cluster(metric_page& page, const proto::ClusterStatus& x, const cluster_facts& facts,
                   const std::map<std::string, uint64_t>& route_bytes);

/// The latest step of each training, by its short name.
void write_trainings(metric_page& page, const training_runs& runs);

} // namespace ringmaster::gateway
