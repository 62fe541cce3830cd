#pragma once

#include "messages/ids.hpp"
#include "messages/journal.pb.h"
#include "messages/status.pb.h"

#include <caf/expected.hpp>
#include <caf/timespan.hpp>

#include <string>
#include <vector>

namespace ringmaster::gateway {

/// What the HTTP server asks of a cluster. Thread-safe: requests of several threads run at the same time.
class cluster_source {
public:
  virtual ~cluster_source() = default;

  virtual caf::expected<proto::ClusterStatus> status() = 0;
  virtual caf::expected<proto::JournalTailResponse> journal(const proto::JournalTailRequest& x) = 0;
  virtual caf::error inject(device_id device, const proto::FaultRequest& fault) = 0;
  /// Returns what each communicator did, one sentence each.
  virtual caf::expected<std::vector<std::string>> drain(const std::string& node, caf::timespan within) = 0;
};

} // namespace ringmaster::gateway
