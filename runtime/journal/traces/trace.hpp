#pragma once

#include "messages/journal.pb.h"

#include <cstdint>
#include <span>
#include <string>

namespace ringmaster {

/// A trace and its size.
struct journal_trace {
  std::string json;
  uint64_t slices = 0;   ///< Ranks' parts of operations, and commands.
  uint64_t instants = 0; ///< Events of the cluster.
  uint64_t omitted = 0;  ///< The oldest records, left out to stay within the limit.
};

/// The records as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing, in the JSON Trace Event Format.
/// - A node is a process, and each stream of its devices a track. A slice is one rank's part of an operation, or a
/// command.
/// - A shared-memory operation has one record, and a slice for each of its devices.
/// - The slice of a device that hung or died ends when the device was given up, and says so.
/// - Arrows lead from the coordinator's start of an operation to its ranks' parts. `ringmaster draw` shows the blocks.
/// - Events of the whole cluster are instants of the process "coordinator".
/// - Times are microseconds since the earliest one, by the coordinator's clock. Times of a node are converted with the
///   journal's best estimate, whose error is in the process's name; nodes on the coordinator's host share its clock.
/// `context` has the operations' algorithms and sizes; it may contain more records than are shown.
journal_trace trace_of(std::span<const proto::Record> shown, std::span<const proto::Record> context);

inline journal_trace trace_of(std::span<const proto::Record> records) {
  return trace_of(records, records);
}

/// A trace of at most `bytes_max` with the latest records, but at least one.
journal_trace latest_trace_of(std::span<const proto::Record> shown, std::span<const proto::Record> context,
                              uint64_t bytes_max);

} // namespace ringmaster
