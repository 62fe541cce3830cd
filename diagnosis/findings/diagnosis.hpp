#pragma once

#include "diagnosis/records/job_records.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::diagnosis {

enum class fault_kind : uint8_t {
  none, ///< No rank waits.
  never_called,
  other_collective,
  other_size,
  other_datatype,
  other_root,
  other_order,
  other_group,
  slow,
  died,
  hung_in_kernel,
  in_data_loader,
  in_checkpoint,
  communicator_creation,
  no_partner, ///< A send or receive without its counterpart.
};
/// "never_called": for programs.
std::string_view name_of(fault_kind x);

enum class certainty : uint8_t {
  certain,
  likely,   ///< The evidence points there, but parts are missing or inferred; see the doubts.
  ambiguous ///< Others may be the cause as well.
};
std::string_view name_of(certainty x);

/// Why a job hangs: who does not do what others wait for.
struct cause {
  fault_kind kind = fault_kind::none;
  std::vector<uint32_t> ranks; ///< Ascending.
  certainty sure = certainty::certain;
  /// The call that others wait in, as the record of one of them has it; no group: none.
  rank_call awaited;
  bool has_call = false;
  rank_call made; ///< What the first rank called in its place, of a mismatch.
  bool has_made = false;
  std::string place;  ///< Where the cause is according to its stack or a log, one clause; may be empty.
  size_t waiting = 0; ///< Ranks that wait for it, directly and through others.
};

/// Ranks that wait in one call, and the ranks that they wait for.
struct wait_link {
  std::vector<uint32_t> waiting;
  rank_call call;
  std::vector<uint32_t> waits_for;
  std::string reason; ///< "did not come to it"
  int64_t since_ns = 0;
};

/// A call of a rank beside the calls of others.
struct evidence_row {
  uint32_t rank = 0;
  rank_call call;
  bool is_cause = false;
  bool made = true; ///< False: the rank has not made the awaited call; this is its latest one, if it has a name.
};

/// The answer of an analysis.
struct diagnosis_result {
  cause root;
  std::vector<cause> others;    ///< Further possible causes, the most likely first.
  std::vector<wait_link> chain; ///< From ranks at the end of the queue to the cause.
  std::vector<evidence_row> evidence;
  std::vector<std::string> doubts; ///< What makes the answer less than certain.
  std::vector<std::string> checks; ///< What to do next.
  size_t ranks_known = 0, ranks_waiting = 0;
};

/// Finds out why the job hangs. Deterministic; the same records give the same answer.
///
/// A rank that waits in a call is a victim. What it waits for leads to other ranks: those that have not come to the
/// call, or come to it with something else. Ranks among them that wait themselves lead on, also across process groups.
/// At the end are ranks that wait in no call, ranks with a mismatch, and ranks whose GPU has not started a call: the
/// cause. Of several, the one counts in front of which ranks waited first.
diagnosis_result diagnose(const job_records& job);

/// The answer in one sentence.
std::string sentence_of(const job_records& job, const cause& x);
/// "rank 3 on hosta", "ranks 8-15 on hostb".
std::string ranks_with_hosts(const job_records& job, const std::vector<uint32_t>& ranks);

} // namespace ringmaster::diagnosis
