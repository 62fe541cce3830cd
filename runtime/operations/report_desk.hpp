#pragma once

#include "messages/transfer.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ringmaster {

/// Gathers the messages of one process's ranks to a communicator: all of them have come to a shared-memory operation,
/// or have finished or committed an operation. So the number of control messages depends on processes, not on ranks.
/// Other reports, that an operation broke or was stopped, are passed on at once, after those that were gathered. Pure.
class report_desk {
public:
  /// Operations of this epoch were sent to these ranks of the process.
  void expect(communicator_id communicator, epoch_number epoch, const std::vector<device_id>& devices);
  /// Returns what is to be sent now.
  std::optional<shared_memory_arrivals> on_arrival(const shared_memory_arrival& x);
  std::vector<proto::RankReport> on_report(const proto::RankReport& x);
  /// The epoch ends. Returns what was gathered.
  std::vector<proto::RankReport> stop(communicator_id communicator);
  void forget(communicator_id communicator) { known_.erase(communicator); }

private:
  using moment = std::pair<uint64_t, proto::RankReport::Phase>; ///< The operation's sequence, and its phase.

  struct process_ranks {
    epoch_number epoch;
    bool stopped = false; ///< The epoch has ended: later reports are passed on at once.
    std::set<device_id> devices;
    std::map<device_id, shared_memory_arrival> arrived;
    sequence_number announced;
    std::map<moment, std::vector<proto::RankReport>> gathered;
  };
  std::map<communicator_id, process_ranks> known_;
};

} // namespace ringmaster
