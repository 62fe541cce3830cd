#pragma once

#include "messages/collective.pb.h"
#include "messages/ids.hpp"
#include "runtime/operations/call_key.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

namespace ringmaster {

/// Which operations a stream has put in place or was to drop, and whose calls they were: a communicator that is built
/// again after its coordinator was restarted learns from it what is done.
class ended_operations {
public:
  /// Calls of the host, and of this device's rank, that are kept for each communicator. A caller has fewer that were
  /// not answered.
  static constexpr size_t calls_max = 1024;

  /// The plan's operations, of which several may be walked as one, have ended on this device.
  void note(const proto::OperationPlan& plan, device_id device) {
    auto& of = communicators_[communicator_id{plan.comm_id()}];
    for (auto& part : plan.fused())
      note(of, part.sequence(), part.origin(), device);
    if (plan.fused().empty())
      note(of, plan.sequence(), plan.origin(), device);
  }
  /// The plan's operations, and those that come with it, will not be run again: they have failed.
  void note_cancelled(const proto::OperationPlan& plan) {
    auto& of = communicators_[communicator_id{plan.comm_id()}];
    for (auto& part : plan.fused())
      note_failed(of, part.sequence(), part.origin());
    if (plan.fused().empty())
      note_failed(of, plan.sequence(), plan.origin());
    for (auto& next : plan.next())
      note_cancelled(next);
  }
  /// The latest that has ended; 0: none.
  sequence_number latest(communicator_id communicator) const {
    const auto found = communicators_.find(communicator);
    return found == communicators_.end() ? sequence_number{} : found->second.latest;
  }
  void write_to(proto::RecalledCommunicator& x) const {
    const auto found = communicators_.find(communicator_id{x.comm_id()});
    if (found == communicators_.end())
      return;
    x.set_ended(found->second.latest.value);
    for (auto& [made, sequence] : found->second.host_calls) {
      auto& known = *x.add_host_calls();
      known.mutable_call()->set_caller(made.first);
      known.mutable_call()->set_number(made.second);
      known.set_sequence(sequence.value);
    }
    for (auto& [caller, number] : found->second.rank_calls) {
      auto& known = *x.add_rank_calls();
      known.set_caller(caller);
      known.set_number(number);
    }
    for (auto& each : found->second.failed_calls)
      *x.add_failed_calls() = each;
    x.set_batch(found->second.batch);
    x.set_failed_in_batch(found->second.failed_in_batch.value);
  }
  void forget(communicator_id communicator) { communicators_.erase(communicator); }

private:
  struct ended {
    sequence_number latest;
    std::deque<std::pair<call_key, sequence_number>> host_calls;
    std::deque<call_key> rank_calls;
    std::deque<proto::RecalledCommunicator::FailedCall> failed_calls;
    uint64_t batch = 0;              ///< The latest of the host's calls.
    sequence_number failed_in_batch; ///< The latest of its operations that was cancelled; 0: none.

    void note_batch(uint64_t number) {
      if (number <= batch)
        return;
      batch = number;
      failed_in_batch = {};
    }
  };

  static void note(ended& of, uint64_t sequence, const proto::CallOrigin& origin, device_id device) {
    of.latest = std::max(of.latest, sequence_number{sequence});
    of.note_batch(origin.batch());
    if (origin.has_host())
      keep(of.host_calls, {{origin.host().caller(), origin.host().number()}, sequence_number{sequence}});
    for (int i = 0; i < origin.rank_devices_size(); ++i)
      if (origin.rank_devices(i) == device.value)
        keep(of.rank_calls, {origin.ranks(i).caller(), origin.ranks(i).number()});
  }

  static void note_failed(ended& of, uint64_t sequence, const proto::CallOrigin& origin) {
    if (sequence_number{sequence} <= of.latest)
      return; // of a series, one that has ended
    of.note_batch(origin.batch());
    if (origin.batch() != 0 && origin.batch() == of.batch)
      of.failed_in_batch = std::max(of.failed_in_batch, sequence_number{sequence});
    for (int i = 0; i < std::min(origin.ranks_size(), origin.rank_devices_size()); ++i) {
      proto::RecalledCommunicator::FailedCall failed;
      *failed.mutable_call() = origin.ranks(i);
      failed.set_device_id(origin.rank_devices(i));
      failed.set_sequence(sequence);
      keep(of.failed_calls, std::move(failed));
    }
  }

  template <class T>
  static void keep(std::deque<T>& latest, T what) {
    latest.push_back(std::move(what));
    if (latest.size() > calls_max)
      latest.pop_front();
  }

  std::map<communicator_id, ended> communicators_;
};

} // namespace ringmaster
