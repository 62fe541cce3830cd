#pragma once

#include "diagnosis/findings/diagnosis.hpp"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ringmaster::diagnosis {

/// Why two ranks' calls with one sequence number cannot be the same collective; none: they can. Sizes count by
/// elements, since [4, 8] and [32] match. Sizes of all-to-all, gather and scatter may differ between ranks.
std::optional<fault_kind> mismatch_of(const job_records& job, const rank_call& a, const rank_call& b);

/// Whether ranks, and steps, may give such a collective different numbers of elements.
bool may_be_uneven(std::string_view name);

/// The calls of several ranks as sets that match, the largest set first; indices into `calls`.
std::vector<std::vector<size_t>> matching_sets(const job_records& job, std::span<const rank_call* const> calls);

} // namespace ringmaster::diagnosis
