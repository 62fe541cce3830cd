#pragma once

#include "actors/streams/command.hpp"
#include "actors/streams/received_bytes.hpp"
#include "actors/streams/route.hpp"
#include "actors/streams/stream.hpp"
#include "actors/streams/walk_blocks.hpp"
#include "actors/streams/walk_buffers.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/operations/packing.hpp"
#include "runtime/reduction/reducer.hpp"
#include "runtime/schedule/schedule_run.hpp"

#include <chrono>
#include <optional>
#include <vector>

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
  // Messages of communicators to a stream.
  static void accept(stream_state& stream, const operation_orders& orders);
  static void accept(stream_state& stream, const proto::Release& x);
  static void accept(stream_state& stream, const proto::Quiesce& x);
  static void accept(stream_state& stream, const proto::ProgressRequest& x);

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

  /// For the log of a broken invariant: "operation #17 of communicator 7 in epoch 2, walking, round 4 of 14, ...".
  std::string state_text() const;

private:
  enum class phase { waiting, planned, walking, finished, broken, committing, joint };

  /// Shared by the commands of one message.
  struct received_orders {
    operation_orders orders;
    caf::strong_actor_ptr communicator;
    std::shared_ptr<device_memory> memory;
  };

  enum class turn { goes_on, over, committed };

  void ensure(bool holds, std::string_view what,
              const std::source_location& where = std::source_location::current()) const {
    ensure_of(*this, holds, what, where);
  }
  /// Refuses phases that do not follow each other in the drawing above.
  void enter(phase next);
  /// An operation whose walk has ended.
  struct walked {
    const proto::OperationPlan* plan = nullptr;
    uint64_t shadow = 0; ///< Address in the scratch area; 0: none
    uint64_t output_bytes = 0;
    proto::RankReport::Walk report;
  };

  static collective_command* find(stream_state& stream, communicator_id communicator, sequence_number sequence);

  static void accept(stream_state& stream, const std::shared_ptr<const received_orders>& received,
                     const proto::OperationPlan& plan);
  /// Reports the latest shared-memory operation that the stream has come to.
  static void announce(stream_state& stream);
  static void release_shared_memory(stream_state& stream, const proto::Release& x);

  void take_plan(std::shared_ptr<const received_orders> received, const proto::OperationPlan& plan);
  void quiesce();
  command_outcome release(stream_state& stream);
  /// Whether no fault prevents or delays the head's arrival.
  bool may_arrive(stream_state& stream);
  proto::Progress progress(const stream_state& stream) const;

  /// Prepares the walk of a plan. Errors: it cannot start.
  caf::error begin_walk(stream_state& stream, const proto::OperationPlan& plan);
  /// The walk of a plan has ended. Returns false if it was the last one of the series.
  bool walk_on(stream_state& stream);
  caf::error prepare();
  /// The rank's schedule.
  caf::expected<schedule> planned() const;
  caf::error no_room(const caf::error& problem, const plan_request& request) const;
  /// What blocks are combined with; for PREMUL_SUM a scaled copy of the input takes the input's place.
  caf::error prepare_reduction();
  bool wants_shadow(const plan_request& request) const;
  /// Several small operations are walked as one: their inputs are packed, their outputs unpacked.
  bool fused() const { return !plan_->fused().empty(); }
  bool has_factors() const { return what().op() == gpu_sim::PREMUL_SUM && reduces(what().kind()); }
  /// Whether a copy of the input takes its place: packed, times its factor, and scaled.
  bool stages() const { return fused() || has_factors(); }
  caf::error check_buffers() const;
  /// The system allocates the next part of the memory that will be written. Returns whether there is more: it takes
  /// long.
  bool expect_bytes();
  std::vector<packed_piece> inputs() const {
    return packed_pieces(*plan_, rank_, buffer_side::input, buffers_.input_bytes);
  }
  std::vector<packed_piece> outputs() const {
    return packed_pieces(*plan_, rank_, buffer_side::output, buffers_.output_bytes);
  }
  /// Identifies the command in the queue and in reports.
  uint64_t sequence() const { return series_->sequence(); }
  command_outcome advance(stream_state& stream);
  /// Returns whether there is more to do now.
  bool start_round(stream_state& stream);
  void start_step(stream_state& stream, size_t index);
  /// Whether the block is the input of this rank, or of another one, and has not been scaled before it is added.
  bool is_unscaled(const block_range& own) const;
  bool is_unscaled(uint32_t peer, const device_window& its) const;
  block_sink sink_of(const step& todo, bool unscaled);
  void send(stream_state& stream, size_t index);
  /// Steps that were waiting for this one start.
  void ended(stream_state& stream, size_t index);
  void take(stream_state& stream, const offer& x);
  turn read_some(stream_state& stream);
  void end_step(stream_state& stream, const block_reading& work);
  command_outcome commit_done(stream_state& stream);
  void free_walked();
  /// By value: the reason may be in a route that is destroyed.
  void break_off(stream_state& stream, caf::error reason);
  void report(stream_state& stream, proto::RankReport::Phase how, const caf::error& error = {});

  const proto::Collective& what() const { return plan_->collective(); }
  /// Of fused operations, the first one's.
  uint64_t input_address() const {
    return (fused() ? plan_->fused(0).input_addresses() : plan_->input_addresses()).Get(static_cast<int>(rank_));
  }
  uint64_t output_address() const {
    return (fused() ? plan_->fused(0).output_addresses() : plan_->output_addresses()).Get(static_cast<int>(rank_));
  }
  uint32_t world_size() const { return static_cast<uint32_t>(plan_->device_ids_size()); }
  uint64_t address_of(const block_range& range) const;
  std::byte* bytes_at(const block_range& range) const;
  uint64_t bytes_of(const block_range& range) const { return range.count * buffers_.element_bytes; }
  transfer_key key_of(size_t step_index, uint32_t source, uint32_t destination) const;
  std::string round_text() const; ///< "round 4 of 14"
  std::string where() const;      ///< "round 4 of 14 of operation #17 on communicator 7"

  std::shared_ptr<const received_orders> received_; ///< Keeps the plan alive.
  const proto::OperationPlan* series_ = nullptr;    ///< The first plan, which has all later ones of its series.
  const proto::OperationPlan* plan_ = nullptr;      ///< The plan of the series that is being walked.
  std::vector<walked> walked_;
  phase phase_ = phase::waiting;
  uint32_t rank_ = 0;
  schedule_run run_;
  walk_buffers buffers_;
  walk_blocks blocks_;
  std::optional<reducer> combine_;
  double scale_ = 1;              ///< Of every input before it is added: `reducer::scale_before`.
  received_bytes received_bytes_; ///< By the whole series.
  uint64_t slices_ = 0;           ///< Slices and chunks so far: progress within a block.
  uint64_t started_ns_ = 0;       ///< The series.
  uint64_t walk_started_ns_ = 0;
  uint64_t received_before_ = 0; ///< Bytes that were received before this walk.
  std::chrono::steady_clock::time_point last_move_;
  std::chrono::steady_clock::time_point stalled_until_; ///< A slow device: when it may go on.
};

} // namespace ringmaster
