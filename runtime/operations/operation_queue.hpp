#pragma once

#include "messages/ids.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/operations/batch_results.hpp"
#include "runtime/operations/operation.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>

namespace ringmaster {

/// The operations of a communicator that were called and have not ended, in the order of the calls: those in flight,
/// and those that wait for GroupEnd. An operation is decided when all ranks have finished it, and ends when all have
/// committed it. `epoch_change` decides what happens when ranks are lost and epochs change. No clock, no actor.
class operation_queue {
public:
  explicit operation_queue(communicator_id owner) : owner_(owner) {}

  size_t size() const { return in_flight_.size() + waiting_.size(); }
  bool nothing_in_flight() const { return in_flight_.empty(); }
  bool idle() const { return size() == 0; }
  sequence_number latest() const { return latest_; } ///< The number of the latest call.
  std::deque<operation>& in_flight() { return in_flight_; }
  const std::deque<operation>& in_flight() const { return in_flight_; }
  size_t waiting() const { return waiting_.size(); }
  batch_results& batch() { return batch_; }
  const batch_results& batch() const { return batch_; }

  /// Numbers it. `rank_group`: the group of the ranks' calls, which do not wait for GroupEnd; 0: the host has called.
  operation& add(operation op, uint64_t rank_group);
  /// Takes over those of a communicator that is built again. `latest`: the highest number that was given.
  void restore(std::vector<operation> in_flight, sequence_number latest);
  /// Numbers up to this one were given, to calls that are lost.
  void skip_to(sequence_number latest) { latest_ = std::max(latest_, latest); }
  /// Whether such a call waits for GroupEnd.
  bool collects(uint64_t rank_group) const { return group_open_ && rank_group == 0; }
  /// Error of both: group_misuse.
  caf::error open_group();
  caf::error close_group();
  /// The operations of the group that was closed last, which are in flight now. Cleared by the call.
  std::vector<sequence_number> take_closed();

  /// nullptr: it has ended, or waits for GroupEnd.
  operation* find(sequence_number sequence);
  /// The report is of the attempt that counts.
  bool counts(const proto::RankReport& x);
  /// The device has finished the operation, and those that are fused with it. Returns those that are decided now.
  std::vector<operation*> note_finished(operation& op, device_id device);
  /// The device has put the results of these in place.
  void note_committed(operation& op, device_id device);
  /// The data of a shared-memory operation starts to move: it is decided.
  void start_moving(operation& op);
  /// It fails, with those that are fused with it. Decided operations are not cancelled.
  void cancel(operation& op, const caf::error& error);
  void cancel_running(const caf::error& error);
  /// Like `cancel_running`, including operations that wait for GroupEnd, which never comes.
  void cancel_all(const caf::error& error);
  /// The device loses its rank in all running operations. Those that cannot go on without it are cancelled;
  /// their errors end with `because`.
  void drop(device_id device, const std::string& because);
  /// Another device takes the lost one's ranks, with the same offsets in its memory. `input_error(op)`: why the spare
  /// lacks the operation's input.
  void replace(device_id lost, uint64_t old_min, const gpu_sim::DeviceMetadata& spare,
               const std::function<caf::error(const operation&)>& input_error);

  struct memory_range {
    device_id device;
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  /// What a spare must hold before operations run again: the lost device's inputs, except outputs of earlier operations
  /// that run again as well.
  std::vector<memory_range> inputs_of(device_id lost) const;
  static std::vector<memory_range> outputs_of(const operation& op);

  /// Streams are being stopped: later reports of running attempts do not count. Returns the cancelled operations.
  std::vector<sequence_number> stop();
  /// Removes and returns those for which `ended` holds.
  std::vector<operation> take(const std::function<bool(const operation&)>& ended);
  std::vector<operation> take_cancelled();
  /// Decided ones that every remaining rank has committed.
  std::vector<operation> take_committed(const std::vector<rank_device>& ranks);

private:
  /// Those that are fused with it, or it alone.
  std::vector<operation*> fused_with(operation& op);
  void decide(operation& op);
  template <class Visitor>
  void each(Visitor visit) {
    for (auto* queue : {&in_flight_, &waiting_})
      for (auto& op : *queue)
        visit(op);
  }

  communicator_id owner_;
  std::deque<operation> in_flight_;
  std::deque<operation> waiting_; ///< Called since GroupStart.
  std::vector<sequence_number> closed_;
  bool group_open_ = false;
  uint64_t groups_ = 0;
  sequence_number latest_;
  batch_results batch_;
};

} // namespace ringmaster
