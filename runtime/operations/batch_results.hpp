#pragma once

#include "runtime/operations/operation.hpp"

#include <set>
#include <vector>

namespace ringmaster {

/// The latest batch of operations: those that were called since the caller last heard how its calls ended. Knows which
/// ranks miss a result of the batch because a spare has taken the rank that held it.
class batch_results {
public:
  /// `of_host`: the host has called; the ranks' own calls are not part of the batch.
  void start(bool of_host) {
    of_host_ = of_host;
    has_results_ = false;
    without_results_.clear();
  }
  /// The communicator was built again, and calls have ended before: their callers may not have heard of them.
  void restore(bool of_host, const std::vector<device_id>& without_results) {
    start(of_host);
    has_results_ = true;
    without_results_.insert(without_results.begin(), without_results.end());
  }
  bool contains(const operation& op) const { return !of_host_ || !op.was_called_by_ranks(); }
  const std::set<device_id>& without_results() const { return without_results_; }

  void note_decided(const operation& op) { has_results_ = has_results_ || contains(op); }
  /// The spare does not hold what the lost device held.
  void note_spare(device_id spare) {
    if (has_results_)
      without_results_.insert(spare);
  }
  void note_lost(device_id device) { without_results_.erase(device); }

private:
  bool of_host_ = false;
  bool has_results_ = false; ///< An operation of the batch was decided.
  std::set<device_id> without_results_;
};

} // namespace ringmaster
