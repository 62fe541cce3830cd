#pragma once

#include "actors/movers/shared_memory_movers.hpp"
#include "runtime/operations/epoch_change.hpp"

#include <caf/timespan.hpp>

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace ringmaster {

/// A COMMUNICATOR's joint operations: when every stream has come to one, the data goes straight from memory to memory,
/// for all ranks at once, those of other processes on the host included. Nobody but the communicator, its process's
/// movers and ranks that wait there takes part, so what has begun is completed, whoever is lost meanwhile: it is
/// decided when everybody has come to it. And nobody but they writes to another process's memory: whoever was frozen,
/// taken for dead and goes on changes no byte elsewhere. Owned by the communicator, who tells it whose turn it is.
class shared_memory_run {
public:
  using time_point = std::chrono::steady_clock::time_point;

  struct options {
    std::shared_ptr<shared_memory_movers> movers; ///< That help; null: the communicator does it alone.
    caf::timespan turn{0};                        ///< It moves data for so long between two looks at its mailbox.
  };
  /// What the communicator does for it.
  struct callbacks {
    std::function<void(epoch_change::decisions)> carry_out;
    /// The streams go on behind these operations.
    std::function<void(sequence_number first, sequence_number last)> release;
    /// As this process sees it, where the device is another one's.
    std::function<std::shared_ptr<mapped_memory>(device_id)> memory_of;
    /// This one's memory is of no use any more.
    std::function<void(device_id, const caf::error&)> lose;
    std::function<void(time_point)> note_progress;
    std::function<void(bool)> gather_records; ///< Those of one turn go out at once.
  };

  shared_memory_run(communicator_actor::pointer self, options opts, epoch_change& epochs, callbacks owner)
    : self_(self), options_(std::move(opts)), epochs_(epochs), owner_(std::move(owner)) {}

  /// A new epoch is open: nobody has come to anything.
  void reset() { ranks_.clear(); }
  void on_arrival(const shared_memory_arrival& x);
  bool has_come(device_id device, sequence_number sequence) const {
    auto rank = ranks_.find(device);
    return rank != ranks_.end() && rank->second.sequence >= sequence;
  }
  /// It is the communicator's turn again, or the job of this number is done.
  void moved(uint64_t number);
  /// Slices that are moved count as progress.
  void note_moving(time_point now);

private:
  /// Operations whose data is where it belongs, and whose streams have not been told: while everybody has come to the
  /// next one, too, they would only wait there. Nothing but `moving_` keeps them from it.
  struct done_operations {
    sequence_number first, last; ///< 0: none.
    time_point since;

    void add(sequence_number sequence, time_point now) {
      if (last == sequence_number{})
        first = sequence, since = now;
      last = sequence;
    }
  };
  /// How far a rank has come.
  struct place {
    sequence_number sequence; ///< The latest joint operation that it has come to.
    std::shared_ptr<mapped_memory> memory;
    bool elsewhere = false; ///< It is another process's.
  };
  /// Data that is being moved. It ends whoever is lost: epochs wait for it.
  struct moving_job {
    uint64_t number = 0;
    sequence_number sequence;                ///< 0: none.
    std::shared_ptr<shared_memory_job> work; ///< Null for a small one.
    uint32_t slices_seen = 0;
  };

  /// Runs what everybody has come to, for a while.
  void run();
  /// Takes the next operation up, and moves the data of a small one. Returns whether there is one to run.
  bool begin_moving();
  /// Returns whether the data of the operation that was taken up is where it belongs. If not, `moved` is called later.
  bool keep_moving(time_point turn_end);
  bool give_way();
  /// The streams go on behind what is done, unless they would wait at the next one: that has time.
  void release();
  bool everybody_is_at(sequence_number sequence) const;
  shared_memory_operation work_of(operation& op, uint64_t& bytes);
  using losses = std::vector<std::pair<device_id, caf::error>>;
  /// Whose memories, other processes', were damaged while data was moved, with the reason.
  losses damaged() const;
  /// The same before any is: whose files are too short by now, at most a millisecond ago.
  losses cut();
  void lose(const losses& whom);

  communicator_actor::pointer self_;
  options options_;
  epoch_change& epochs_;
  callbacks owner_;
  std::map<device_id, place> ranks_;
  moving_job moving_;
  time_point looked_at_files_{};
  done_operations done_;
};

} // namespace ringmaster
