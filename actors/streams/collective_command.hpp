#pragma once

#include "actors/streams/command.hpp"
#include "actors/streams/rank_plan.hpp"
#include "actors/streams/stream.hpp"
#include "actors/streams/walk_blocks.hpp"
#include "actors/streams/walk_buffers.hpp"
#include "actors/streams/walk_reduction.hpp"
#include "actors/streams/walked_series.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/schedule/schedule_run.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace ringmaster {

/// One rank's part of a collective: walks the rank's schedule, and keeps the input until the outcome is certain.
///
///   waiting --plan--> planned --head of the stream--> walking --last step--> finished --Release--> committing --> done
///      ^                 |                               |                       |
///      +---- Quiesce ----+-------------------------------+-----------------------+ (a new epoch: same place, new plan)
///
/// An in-place operation walks into a shadow of its output in the device's scratch area; committing copies the shadow
/// over the input. Out of place the output is written directly, and committing is only the permission to go on.
///
/// A series is several operations whose plans came as one: it walks them one after the other, then it has finished.
///
/// A shared-memory operation has no walk: planned --all streams come to it--> joint --Release--> done. The communicator
/// moves its data.
class collective_command : public command {
public:
  enum class phase { waiting, planned, walking, finished, broken, committing, joint };

  /// Shared by the commands of one message.
  struct received_orders {
    operation_orders orders;
    caf::strong_actor_ptr communicator;
    std::shared_ptr<device_memory> memory;
  };

  ~collective_command() override;

  const char* kind() const override { return "collective"; }
  using command::as_collective;
  collective_command* as_collective() override { return this; }
  command_outcome begin(stream_state& stream) override;
  command_outcome resume(stream_state& stream) override;
  command_outcome on_offer(stream_state& stream, const offer& x) override;
  command_outcome on_taken(stream_state& stream, const taken& x) override;
  command_outcome on_refused(stream_state& stream, const refused& x) override;
  command_outcome on_chunk(stream_state& stream, const chunk& x) override;
  bool expects(const transfer_key& key) const override { return blocks_.awaited.count(key) != 0; }

  // -- for `collective_dispatch` --

  /// The plan of the series that is being walked.
  const rank_plan& plan() const { return plan_; }
  /// Identifies the command in the queue and in reports.
  uint64_t sequence() const { return series_.first().sequence(); }
  /// As the communicator has sent it, with all plans of its series.
  const proto::OperationPlan& ordered() const { return series_.first(); }
  proto::RecalledCommunicator::Phase recalled_phase() const;
  /// The communicator was built again: from now on this actor gets the answers.
  void answer_to(const caf::strong_actor_ptr& communicator);
  phase current_phase() const { return phase_; }
  void take_plan(std::shared_ptr<const received_orders> received, const proto::OperationPlan& plan);
  /// The head is a shared-memory operation. Returns whether no fault prevents or delays its arrival.
  bool may_arrive(stream_state& stream);
  /// All before it in the queue have arrived.
  void arrive(stream_state& stream);
  command_outcome release(stream_state& stream);
  /// It stops for a new epoch, and says so if it has started.
  void interrupt(stream_state& stream);
  void report(stream_state& stream, proto::RankReport::Phase how, const caf::error& error = {});
  /// Sends a message to the communicator that ordered it.
  template <class T>
  void answer(stream_state& stream, T what) const {
    stream.self->send(caf::actor_cast<communicator_actor>(received_->communicator), std::move(what));
  }
  proto::Progress progress(const stream_state& stream) const;
  /// What this device has done of its own for its communicator, up to now.
  proto::DeviceWork work_so_far(const stream_state& stream) const;
  std::string where() const; ///< "round 4 of 14 of operation #17 on communicator 7"

  /// For the log of a broken invariant: "operation #17 of communicator 7 in epoch 2, walking, round 4 of 14, ...".
  std::string state_text() const;

private:
  enum class turn { goes_on, over, committed };

  void ensure(bool holds, std::string_view what,
              const std::source_location& where = std::source_location::current()) const {
    ensure_of(*this, holds, what, where);
  }
  /// Refuses phases that do not follow each other in the drawing above.
  void enter(phase next);
  void quiesce();

  /// Prepares the walk of the next plan of the series. Errors: it cannot start.
  caf::error begin_walk(stream_state& stream);
  /// The walk of a plan has ended. Returns false if it was the last one of the series.
  bool walk_on(stream_state& stream);
  /// Does what can be done now. The time until it has to wait for others counts as this device's own.
  command_outcome advance(stream_state& stream);
  command_outcome move_on(stream_state& stream);
  /// The stream itself owes the next move.
  bool owes_move() const;
  void note_work(stream_state& stream);
  /// Returns whether there is more to do now.
  bool start_round(stream_state& stream);
  void start_step(stream_state& stream, size_t index);
  void send(stream_state& stream, size_t index);
  /// Steps that were waiting for this one start.
  void ended(stream_state& stream, size_t index);
  void take(stream_state& stream, const offer& x);
  turn read_some(stream_state& stream);
  void end_step(stream_state& stream, const block_reading& work);
  command_outcome commit_done(stream_state& stream);
  /// By value: the reason may be in a route that is destroyed.
  void break_off(stream_state& stream, caf::error reason);
  std::string round_text() const; ///< "round 4 of 14"

  std::shared_ptr<const received_orders> received_; ///< Keeps the plans alive.
  walked_series series_;
  rank_plan plan_;
  phase phase_ = phase::waiting;
  schedule_run run_;
  walk_buffers buffers_;
  walk_reduction reduction_{buffers_};
  walk_blocks blocks_;
  std::chrono::steady_clock::time_point works_since_; ///< It owes the next move since then; zero: others do.
  uint64_t slices_ = 0;                               ///< Slices and chunks so far: progress within a block.
  std::chrono::steady_clock::time_point last_move_;
  std::chrono::steady_clock::time_point stalled_until_; ///< A slow device: when it may go on.
};

} // namespace ringmaster
