#pragma once

#include <caf/error.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace ringmaster {

/// The records that are missing from the journal. The journal's actor updates it, and the coordinator reports it with
/// the state of the cluster. It outlives both. Thread-safe.
class journal_health {
public:
  /// Why nothing can be written now; no error if the journal can be written.
  void failing(const caf::error& failure);
  /// Counts records that will never be in the journal. Without a cause, the latest failure is the reason.
  void lost(uint64_t records, std::optional<std::string> cause = std::nullopt);

  /// The number of records that are only in memory because nothing can be written now.
  void waiting(uint64_t records);

  uint64_t records_lost() const;
  /// io_error if records are missing or cannot be written now; its text counts both lost and waiting records.
  caf::error trouble() const;

private:
  mutable std::mutex mutex_;
  uint64_t lost_ = 0;
  uint64_t waiting_ = 0;
  caf::error failure_;              ///< Now.
  caf::error last_failure_;         ///< The latest.
  std::optional<std::string> loss_; ///< Why the latest records were lost, unless a write failed.
};

} // namespace ringmaster
