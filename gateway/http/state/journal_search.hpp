#pragma once

#include "gateway/http/state/cluster_source.hpp"
#include "gateway/http/state/json.hpp"

#include <chrono>
#include <string>

namespace ringmaster::gateway {

/// What a request for records asks for: see GET /api/v1/journal in openapi.json.
struct journal_query {
  static constexpr uint32_t limit_max = 1000;
  static constexpr size_t text_bytes_max = 200;

  uint64_t after = 0;
  bool forward = false; ///< From `after` on; else the newest ones before `before`.
  uint64_t before = 0;  ///< 0: the newest.
  uint32_t limit = 100;
  std::string kind;
  std::string text; ///< Part of a record's line, in any case.
  communicator_id communicator;
  device_id device;
};

/// `JournalPage` in openapi.json. A search that takes longer than `within` returns what it has found so far, and where
/// to continue. Errors: those of the source.
caf::expected<json> search_journal(cluster_source& source, const journal_query& query,
                                   std::chrono::milliseconds within = std::chrono::seconds{2});

} // namespace ringmaster::gateway
