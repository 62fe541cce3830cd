#pragma once

#include "actors/movers/shared_memory_movers.hpp"
#include "runtime/epochs/epoch_change.hpp"

#include <caf/timespan.hpp>

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace ringmaster {

/// Moves the data of a communicator's shared-memory operations: when every stream has come to one, the data goes from
/// memory to memory for all ranks at once, also for ranks of other processes on the host. Only the communicator, its
/// process's movers and ranks that wait in its process take part. So an operation that has started is completed even if
/// members are lost meanwhile: it is decided when all ranks have come to it. No other process writes to a member's
/// memory, so a process that was frozen, was declared lost and then goes on changes no byte elsewhere.
///
///   idle --all ranks have come--> moving --data in place--> ended (the next one may move already) --> idle
///
/// The communicator gives it turns: it asks for steps and carries each one out before it asks for the next.
class shared_memory_run {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using losses = std::vector<std::pair<device_id, caf::error>>;

  /// What the communicator does next, in this order.
  struct step {
    std::optional<time_point> progress_at; ///< An operation made progress.
    epoch_change::decisions decisions;
    losses harmed;        ///< Members whose memory is unusable, with the reason: they are lost.
    bool goes_on = false; ///< Ask for another step.
  };
  /// What the communicator does after the last step of a turn.
  struct turn_end {
    std::optional<std::pair<sequence_number, sequence_number>> released; ///< Streams go on after these operations.
    bool is_idle = false; ///< No data moves: `epoch_change::transfer_finished`.
  };

  /// `movers`: threads that help; null: the communicator moves all data by itself.
  shared_memory_run(communicator_actor::pointer self, std::shared_ptr<shared_memory_movers> movers,
                    epoch_change& epochs, communicator_id id)
    : self_(self), movers_(std::move(movers)), epochs_(epochs), id_(id) {}
  ~shared_memory_run() { forget_mark(); }

  /// A new epoch is open: no rank has come to an operation.
  void reset();
  /// A rank has come to an operation, and to all before it. `is_elsewhere`: the memory is another process's. Returns
  /// whether the message counts: not if it is of an older epoch.
  bool on_arrival(device_id device, epoch_number epoch, sequence_number sequence, std::shared_ptr<mapped_memory> memory,
                  bool is_elsewhere);
  bool has_come(device_id device, sequence_number sequence) const {
    const auto rank = ranks_.find(device);
    return rank != ranks_.end() && rank->second.sequence >= sequence;
  }
  /// The message `resume` with this number is of the data that moves now.
  bool is_current(uint64_t number) const { return number == moving_.number; }

  /// A step of a turn that lasts until `until`. If data still moves then, `resume` is sent to the communicator.
  step next(time_point until);
  turn_end end_turn();
  /// Whether slices have been moved since the last call, by any thread.
  bool has_moved();

private:
  /// Operations whose data is in place, and whose streams wait to be released. They are released together while all
  /// ranks have come to the next one as well: there the streams would only wait again.
  struct done_operations {
    sequence_number first, last; ///< 0: none.
    time_point since;

    void add(sequence_number sequence, time_point now) {
      ensure(sequence != sequence_number{} && now >= since, "time does not run backwards");
      if (last == sequence_number{})
        first = sequence, since = now;
      last = sequence;
    }
  };
  /// How far a rank has come.
  struct place {
    sequence_number sequence; ///< The latest operation.
    std::shared_ptr<mapped_memory> memory;
    bool is_elsewhere = false;
  };
  /// Data that is being moved. Epochs wait for its end.
  struct moving_data {
    uint64_t number = 0;                          ///< Of `resume`.
    sequence_number sequence;                     ///< 0: none.
    std::optional<shared_memory_operation> small; ///< Moved by the communicator alone, in one go.
    std::shared_ptr<shared_memory_job> job;       ///< Null for a small one.
    uint32_t slices_seen = 0;
  };
  /// An operation whose data is in place, and whose end the communicator has not heard of.
  struct ended_operation {
    sequence_number sequence; ///< 0: none.
    losses harmed;
  };

  /// Takes up the next operation that all ranks have come to.
  void start_next(step& out);
  /// Returns whether all data of the operation is in place. If not, `resume` is sent later.
  bool keep_moving(time_point until);
  step note_end(step out);
  /// The turn is over, other messages have their turn. Returns false.
  bool give_way();
  bool all_have_come_to(sequence_number sequence) const;
  /// Marks in the memory of another process's rank that the operation's data begins to move, or is in place.
  void mark_moving(sequence_number sequence);
  void mark_moved(sequence_number sequence);
  void forget_mark();
  shared_memory_operation work_of(operation& op, uint64_t& bytes);
  /// Members of other processes whose memories were damaged while data moved.
  losses damaged() const;
  /// The same, and those whose files have become too short, as of a millisecond ago at most.
  losses cut();

  communicator_actor::pointer self_;
  std::shared_ptr<shared_memory_movers> movers_;
  epoch_change& epochs_;
  const communicator_id id_;
  std::shared_ptr<mapped_memory> marked_; ///< Has the mark; null: none.
  operation_mark* mark_ = nullptr;
  std::map<device_id, place> ranks_;
  moving_data moving_;
  ended_operation ended_;
  std::optional<time_point> ended_at_; ///< The last step has reported an end, at this time.
  time_point looked_at_files_{};
  done_operations done_;
};

} // namespace ringmaster
