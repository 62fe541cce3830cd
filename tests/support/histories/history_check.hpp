#pragma once

#include "messages/journal.pb.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ringmaster::test {

/// The journal of one communicator, read as its reader would.
struct history_check {
  std::map<uint64_t, std::vector<uint64_t>> epochs; ///< Devices by epoch.
  std::map<uint64_t, proto::OperationEnded> ended;  ///< By sequence.
  std::string problem;

  /// `restarted`: the coordinator's process has ended once or more: what it had not written is missing, and what its
  /// successor has found again may be recorded twice.
  history_check(const std::vector<proto::Record>& records, uint64_t comm, bool restarted = false) {
    std::set<uint64_t> enqueued, dead;
    std::map<uint64_t, uint32_t> started;
    uint64_t time = 0;
    for (auto& x : records) {
      if (x.has_communicator_created() && x.communicator_created().comm_id() == comm)
        epochs[1] = {x.communicator_created().device_ids().begin(), x.communicator_created().device_ids().end()};
      if (x.has_epoch_opened() && x.epoch_opened().comm_id() == comm) {
        auto& opened = x.epoch_opened();
        expect(epochs.empty() || opened.epoch() > epochs.rbegin()->first, "an epoch is not newer than the one before");
        epochs[opened.epoch()] = {opened.device_ids().begin(), opened.device_ids().end()};
      }
      if (x.has_operation_enqueued() && x.operation_enqueued().request().comm_id() == comm)
        expect(enqueued.insert(x.operation_enqueued().sequence()).second || restarted,
               "an operation was enqueued twice");
      if (x.has_operation_started() && x.operation_started().comm_id() == comm)
        ++started[x.operation_started().sequence()];
      if (x.has_operation_ended() && x.operation_ended().comm_id() == comm) {
        const auto [first, is_new] = ended.emplace(x.operation_ended().sequence(), x.operation_ended());
        expect(is_new || (restarted && first->second.status() == x.operation_ended().status()),
               "an operation ended twice");
      }
      if (x.has_device_died())
        expect(dead.insert(x.device_died().device_id()).second || restarted, "a device died twice");
      time = std::max(time, x.time_ns());
    }
    if (restarted)
      return;
    expect(ended.size() == enqueued.size(), "an operation was enqueued and has not ended");
    for (auto& [sequence, x] : ended)
      expect(x.attempts() == started[sequence], "attempts and starts differ");
  }

  void expect(bool right, const char* otherwise) {
    if (!right && problem.empty())
      problem = otherwise;
  }
};

} // namespace ringmaster::test
