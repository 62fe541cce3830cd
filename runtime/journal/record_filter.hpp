#pragma once

#include "messages/ids.hpp"
#include "messages/journal.pb.h"

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster {

/// Names one operation.
struct operation_key {
  communicator_id communicator;
  sequence_number sequence;

  friend auto operator<=>(const operation_key&, const operation_key&) = default;
};

/// What kind of thing a record is about: one of record_kinds().
std::string_view kind_of(const proto::Record& record);
/// "coordinator", "node", "device", "communicator", "epoch", "operation", "rank", "checkpoint", "command", "fault",
/// "training", and "unknown" for what a later version wrote.
std::span<const std::string_view> record_kinds();

/// The operation that the record belongs to, if any.
std::optional<operation_key> operation_of(const proto::Record& record);
/// The communicator that it belongs to, if any.
std::optional<communicator_id> communicator_of(const proto::Record& record);
/// Whether it names the device, as a member of a communicator or alone.
bool concerns(const proto::Record& record, device_id device);

/// Selects records; what is not set selects all.
struct record_filter {
  std::optional<communicator_id> communicator;
  std::optional<device_id> device;
  std::string kind;                       ///< Empty, or one of record_kinds().
  std::optional<gpu_sim::Status> outcome; ///< Of the record's operation as it stands now, or its own.
  uint64_t after = 0;                     ///< Only indices above this one; 0: all.
  uint64_t last = 0;                      ///< Only so many, the latest; 0: all.

  /// Judges all but `after`, `last` and `outcome`, which need the journal.
  bool matches(const proto::Record& record) const;
};

} // namespace ringmaster
