#pragma once

#include "messages/journal.pb.h"

#include <cstdint>
#include <span>
#include <string>

namespace ringmaster {

/// A trace, and how much is in it.
struct journal_trace {
  std::string json;
  uint64_t slices = 0;   ///< Ranks' parts of operations, and commands.
  uint64_t instants = 0; ///< What happened to the cluster.
  uint64_t omitted = 0;  ///< Records that were to be shown, the oldest, without which the trace keeps to its limit.
};

/// The records as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing, in the JSON Trace Event Format.
/// A node is a process, and each stream of its devices a track; a slice is one rank's part of an operation, or a
/// command. Of a joint operation, which has one record, each of its devices has a slice. That of a device which hung in
/// it, or died, ends when it was given up and says so. Arrows lead from where the coordinator began an operation to its
/// ranks' parts: how blocks travel is the schedule's, which `ringmaster draw` shows. What happens to the cluster as a
/// whole is an instant event of the process "coordinator". Times are microseconds since the earliest that is named, by
/// the coordinator's clock: those of a node are set against it by the best estimate that the journal has, whose error
/// the process's name states; nodes of the coordinator's kernel have its clock. `context` is where the operations'
/// algorithms and sizes are looked up; it may hold more than what is shown.
journal_trace trace_of(std::span<const proto::Record> shown, std::span<const proto::Record> context);

inline journal_trace trace_of(std::span<const proto::Record> records) {
  return trace_of(records, records);
}

/// The same of the latest of these records, with which it has `bytes_max` at most. One record is shown in any case.
journal_trace latest_trace_of(std::span<const proto::Record> shown, std::span<const proto::Record> context,
                              uint64_t bytes_max);

} // namespace ringmaster
