#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace ringmaster {

/// What is not in the journal, as its actor says and whoever is asked how the cluster is tells others. It outlives
/// both. Thread-safe.
class journal_health {
public:
  /// `failure`: why nothing can be written now; empty: it can.
  void failing(const std::string& failure);
  /// The count of records that will never be in the journal, and why; an empty cause: the latest failure.
  void lost(uint64_t records, const std::string& cause = {});

  uint64_t records_lost() const;
  /// For people; empty where every record is in the journal, or about to be.
  std::string trouble() const;

private:
  mutable std::mutex mutex_;
  uint64_t lost_ = 0;
  std::string failure_;    ///< Now.
  std::string last_cause_; ///< The latest failure.
  std::string loss_;       ///< Why the latest records were lost, where it was no failure to write.
};

} // namespace ringmaster
