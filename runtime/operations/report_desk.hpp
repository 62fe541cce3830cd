#pragma once

#include "messages/transfer.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ringmaster {

/// What the ranks of one process have to say to a communicator, gathered: that all of them have come to a joint
/// operation, that all have finished or committed one. So control costs messages a process, not a rank. What nobody
/// waits for the others with, that something broke or was stopped, goes at once, and what was gathered goes before it.
/// Pure.
class report_desk {
public:
  /// These ranks are here, and have been told of operations of this epoch.
  void expect(communicator_id communicator, epoch_number epoch, const std::vector<device_id>& devices);
  /// What is to be said now, if anything.
  std::optional<shared_memory_arrivals> on_arrival(const shared_memory_arrival& x);
  std::vector<proto::RankReport> on_report(const proto::RankReport& x);
  /// The epoch ends: what was gathered.
  std::vector<proto::RankReport> stop(communicator_id communicator);
  void forget(communicator_id communicator) { known_.erase(communicator); }

private:
  using moment = std::pair<uint64_t, proto::RankReport::Phase>; ///< The sequence, and what has come of it.

  struct company {
    epoch_number epoch;
    bool stopped = false; ///< Nobody waits for all of them any more: what is still said goes at once.
    std::set<device_id> devices;
    std::map<device_id, shared_memory_arrival> arrived;
    sequence_number announced;
    std::map<moment, std::vector<proto::RankReport>> gathered;
  };
  std::map<communicator_id, company> known_;
};

} // namespace ringmaster
