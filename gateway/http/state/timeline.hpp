#pragma once

#include "gateway/http/state/json.hpp"
#include "messages/journal.pb.h"

#include <deque>

namespace ringmaster::gateway {

/// The records that show how the cluster has changed: communicators and epochs, losses, faults, what joined and left.
/// It keeps the latest ones.
class timeline {
public:
  static constexpr size_t events_max = 1000;

  /// Returns the fields of `TimelineEvent` in openapi.json if the record belongs here, else null.
  json add(uint64_t index, const proto::Record& record);
  /// Oldest first.
  const std::deque<json>& events() const { return events_; }

private:
  std::deque<json> events_;
};

} // namespace ringmaster::gateway
