#pragma once

#include "runtime/journal/journal_store.hpp"

namespace ringmaster {

/// Limits of one answer, so that a client that reads the whole journal delays its writer by a few milliseconds at most.
struct journal_page_limits {
  uint32_t records_max = 10'000;
  uint64_t searched_max = 10'000;        ///< Records that are compared with the request.
  uint64_t bytes_max = 16 * 1024 * 1024; ///< Of the records; one record is returned in any case.
};

/// The records that the request selects, and the bounds of what was searched: the next request continues with `after`
/// the last of these, or `before` the first. Errors: those of `journal_store::read`.
caf::expected<proto::JournalTailResponse> journal_page(const journal_store& journal, const proto::JournalTailRequest& x,
                                                       const journal_page_limits& limits = {});

} // namespace ringmaster
