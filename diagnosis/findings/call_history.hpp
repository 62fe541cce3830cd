#pragma once

#include "diagnosis/findings/diagnosis.hpp"

#include <cstdint>
#include <optional>

namespace ringmaster::diagnosis {

/// The rank's latest call with this sequence number in the group, or null.
const rank_call* find_call(const rank_records& rank, uint32_t group, uint64_t sequence);

/// Where a rank's calls differ from those of its earlier steps, and how.
struct step_deviation {
  size_t at = 0; ///< The number of the first call that differs.
  fault_kind kind
    = fault_kind::never_called; ///< never_called: the expected call was left out; no_partner: it is a transfer.
  bool sure = true;             ///< False: too few calls follow to tell one kind from another.
  rank_call expected;           ///< The next call of that group, in place of the one that the rank made.
};

/// Training repeats its steps: the longest repetition in the rank's calls says what a step is. The deviation that ends
/// it; none: there is no repetition, it goes on until the last call, or it ended steps ago.
std::optional<step_deviation> deviation_of(const job_records& job, const rank_records& rank);

/// The call that the rank makes next according to its earlier steps.
std::optional<rank_call> next_expected(const job_records& job, const rank_records& rank);

/// How much later than the others the rank came to earlier calls of the group, in nanoseconds, and how late the latest
/// of the others usually was; medians. None: there is no record of it.
struct lateness {
  int64_t own_ns = 0, others_ns = 0;
};
std::optional<lateness> lateness_of(const job_records& job, uint32_t rank, uint32_t group);

} // namespace ringmaster::diagnosis
