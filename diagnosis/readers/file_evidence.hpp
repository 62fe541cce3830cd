#pragma once

#include "diagnosis/records/job_records.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::diagnosis {

/// What one file turned out to be, by its content.
enum class evidence_form : uint8_t {
  flight_recorder_dump, ///< Of one rank.
  ras_status,
  stack_dump, ///< Of py-spy.
  job_log,    ///< Lines of NCCL, of watchdogs and of launchers.
  unknown     ///< Without any line that is known.
};
std::string_view name_of(evidence_form x);

/// A process as NCCL's log names it.
struct process_key {
  std::string host;
  uint64_t pid = 0;
  friend auto operator<=>(const process_key&, const process_key&) = default;
};

/// A communicator in NCCL's log or RAS status.
struct logged_communicator {
  struct member {
    process_key process;
    bool created = false; ///< Its creation has completed.
    int64_t at_ns = 0;    ///< When the creation started; 0: unknown.
    std::string source;
  };
  uint32_t size = 0;
  std::map<uint32_t, member> members; ///< By rank of the communicator, those that are known.
};

/// One collective that a process called, from NCCL's log (NCCL_DEBUG_SUBSYS=COLL).
struct logged_call {
  process_key process;
  std::string communicator;
  uint64_t sequence = 0; ///< NCCL's opCount.
  std::string name, type;
  uint64_t elements = 0;
  uint32_t root = 0;
};

/// How many operations of one kind a rank of a communicator has launched, from RAS.
struct launched_count {
  std::string communicator, operation;
  uint32_t rank = 0; ///< Of the communicator.
  uint64_t count = 0;
};

/// A line of PyTorch's watchdog about a process group.
struct watchdog_line {
  std::optional<uint32_t> rank; ///< Global.
  std::optional<uint32_t> group_rank;
  std::string group, description;
  std::string name;                      ///< Of the collective that timed out.
  int64_t timed_out = -1;                ///< Its sequence; -1: none.
  int64_t enqueued = -1, completed = -1; ///< The group's latest; -1: the line does not say.
  uint64_t elements_in = 0, elements_out = 0;
  uint64_t waited_ms = 0;
  std::string source;
};

/// A remark about a process that is known by its rank or by host and pid.
struct logged_note {
  std::optional<uint32_t> rank;
  process_key process;
  rank_note note;
};

/// Stacks of one process.
struct process_stacks {
  std::optional<uint32_t> rank;
  process_key process; ///< The host may be unknown.
  std::vector<thread_stack> threads;
};

/// What one file says. Ranks are not assigned yet: which rank a file or process is, all files together say.
struct file_evidence {
  std::string name;
  evidence_form form = evidence_form::unknown;

  /// Texts, shapes, stacks and groups of this file; of a dump also one rank's records, whose number may be unknown.
  job_records part;
  std::optional<uint32_t> rank;           ///< As the file's content says.
  std::map<uint32_t, uint32_t> own_index; ///< Of a dump's rank in groups, as its sends and receives say.

  std::map<std::string, logged_communicator> communicators;
  std::vector<logged_call> calls;
  std::vector<launched_count> counts;
  std::vector<watchdog_line> watchdogs;
  std::vector<logged_note> notes;
  std::vector<process_stacks> stacks;
};

/// Reads one file. `name` is for messages, and a hint at the rank; the form follows from the content. Nothing in the
/// content is executed or opened. Errors: corrupt, with the file, and the byte offset, the line or the entry.
caf::expected<file_evidence> read_evidence(std::string name, std::string_view bytes);

/// All files as one job. Errors: corrupt if no file has evidence, or the rank of a dump cannot be found out.
caf::expected<job_records> assemble(std::vector<file_evidence> all);

} // namespace ringmaster::diagnosis
