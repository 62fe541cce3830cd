#pragma once

#include <caf/error.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace ringmaster {

/// What is not in the journal: the journal's actor writes it, and the coordinator reports it with the state of the
/// cluster. It outlives both. Thread-safe.
class journal_health {
public:
  /// Why nothing can be written now. No error: it can.
  void failing(const caf::error& failure);
  /// The count of records that will never be in the journal, and why. Without a cause it is the latest failure.
  void lost(uint64_t records, std::optional<std::string> cause = std::nullopt);

  /// The count of records that are in memory only because nothing can be written now.
  void waiting(uint64_t records);

  uint64_t records_lost() const;
  /// Errors: io_error, where records are missing or cannot be written now. The number in its text counts the lost
  /// records and those that wait in memory.
  caf::error trouble() const;

private:
  mutable std::mutex mutex_;
  uint64_t lost_ = 0;
  uint64_t waiting_ = 0;
  caf::error failure_;              ///< Now.
  caf::error last_failure_;         ///< The latest.
  std::optional<std::string> loss_; ///< Why the latest records were lost, where it was no failure to write.
};

} // namespace ringmaster
