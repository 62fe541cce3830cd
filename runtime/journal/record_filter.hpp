#pragma once

#include "messages/ids.hpp"
#include "messages/journal.pb.h"

#include <caf/error.hpp>

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster {

/// Identifies one operation.
struct operation_key {
  communicator_id communicator;
  sequence_number sequence;

  friend auto operator<=>(const operation_key&, const operation_key&) = default;
};

/// The kind of a record: one of record_kinds().
std::string_view kind_of(const proto::Record& record);
/// "coordinator", "node", "device", "communicator", "epoch", "operation", "rank", "checkpoint", "call", "command",
/// "fault", "training", "audit", "verdict", and "unknown" for records of a later version.
std::span<const std::string_view> record_kinds();
/// Errors: invalid_argument, naming what is allowed, if the kind is neither empty nor one of record_kinds().
caf::error check_kind(const std::string& kind);

/// The operation that the record belongs to, if any.
std::optional<operation_key> operation_of(const proto::Record& record);
/// The communicator that the record belongs to, if any.
std::optional<communicator_id> communicator_of(const proto::Record& record);
/// Whether the record names the device, alone or as a member of a communicator.
bool concerns(const proto::Record& record, device_id device);

/// Selects records. Fields that are not set select all.
struct record_filter {
  std::optional<communicator_id> communicator;
  std::optional<device_id> device;
  std::string kind;                       ///< Empty, or one of record_kinds().
  std::optional<gpu_sim::Status> outcome; ///< The latest of the record's operation, or its own.
  uint64_t after = 0;                     ///< Only records with higher indices.
  uint64_t last = 0;                      ///< Only the latest N records; 0: all.

  /// Checks all fields but `after`, `last` and `outcome`, which need the journal.
  bool matches(const proto::Record& record) const;
};

} // namespace ringmaster
