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
  /// So many records will never be written.
  void lost(uint64_t records);

  uint64_t records_lost() const;
  /// For people; empty where every record is in the journal, or about to be.
  std::string trouble() const;

private:
  mutable std::mutex mutex_;
  uint64_t lost_ = 0;
  std::string failure_;    ///< Now.
  std::string last_cause_; ///< The latest there was.
};

} // namespace ringmaster
