#pragma once

#include "actors/streams/command.hpp"
#include "actors/streams/route.hpp"
#include "actors/streams/stream.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/operations/packing.hpp"
#include "runtime/reduction/reducer.hpp"
#include "runtime/schedule/schedule_run.hpp"

#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
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
/// Of a series, several operations whose plans came as one, it walks one after the other before it has finished.
class collective_command : public command {
public:
  // What communicators say to a stream.
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
  bool expects(const transfer_key& key) const override { return awaited_.count(key) != 0; }

  /// For the log of a broken invariant: "operation #17 of communicator 7 in epoch 2, walking, round 4 of 14, ...".
  std::string state_text() const;

private:
  enum class phase { waiting, planned, walking, finished, broken, committing, joint };

  /// What the commands of one message have in common.
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
  /// Phases follow each other as drawn above.
  void enter(phase next);
  /// Whether no block of the round is on its way.
  bool at_rest() const { return awaited_.empty() && ready_.empty() && under_way_.empty() && sends_pending_.empty(); }

  /// A block that is being read, and the step it is for.
  struct reading {
    /// nullptr: of no step, but what is done with the input before the walk, or the commit; `read_some` tells them
    /// apart.
    const step* todo = nullptr;
    transfer_key key;
    std::unique_ptr<route> bytes;
    caf::strong_actor_ptr sender; ///< Whose it is; nullptr: our own.
    bool awaited = true;          ///< Whether he is told when it has been read.
  };

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
  /// Says how far the stream has come with joint operations.
  static void announce(stream_state& stream);
  static void release_shared_memory(stream_state& stream, const proto::Release& x);

  void take_plan(std::shared_ptr<const received_orders> received, const proto::OperationPlan& plan);
  void quiesce();
  command_outcome release(stream_state& stream);
  /// Whether no fault prevents or delays the head's arrival.
  bool may_arrive(stream_state& stream);
  proto::Progress progress(const stream_state& stream) const;
  /// In blocks that have not ended: it grows while the stream hears nothing.
  uint64_t arrived() const;
  std::set<uint32_t> waits_for() const;

  /// Its plan's walk can begin. Errors: why it cannot.
  caf::error begin_walk(stream_state& stream, const proto::OperationPlan& plan);
  /// Returns whether another one has begun behind the one that has ended, or has failed to.
  bool walk_on(stream_state& stream);
  caf::error prepare();
  /// The rank's whole schedule.
  caf::expected<schedule> planned() const;
  caf::error no_room(const caf::error& problem, const plan_request& request) const;
  /// What blocks are combined with; for PREMUL_SUM a scaled copy of the input takes the input's place.
  caf::error prepare_reduction();
  bool wants_shadow(const plan_request& request) const;
  /// Several small ones that are walked as one: their inputs are packed, their outputs unpacked.
  bool fused() const { return !plan_->fused().empty(); }
  bool has_factors() const { return what().op() == gpu_sim::PREMUL_SUM && reduces(what().kind()); }
  /// Whether a copy of the input takes its place: packed, times its factor, and scaled.
  bool stages() const { return fused() || has_factors(); }
  caf::error check_buffers() const;
  /// The next of what is about to be written gets its memory. Returns whether there is more: it takes long.
  bool expect_bytes();
  std::vector<packed_piece> inputs() const { return packed_pieces(*plan_, rank_, buffer_side::input, input_bytes_); }
  std::vector<packed_piece> outputs() const { return packed_pieces(*plan_, rank_, buffer_side::output, output_bytes_); }
  /// What finds it in the queue, and what it is reported by.
  uint64_t sequence() const { return series_->sequence(); }
  command_outcome advance(stream_state& stream);
  /// Returns whether there is more to do now.
  bool start_round(stream_state& stream);
  void start_step(stream_state& stream, size_t index);
  /// Whether what lies there is the rank's own input, or another rank's, of which sums are made that are scaled down.
  bool is_unscaled(const block_range& own) const;
  bool is_unscaled(uint32_t peer, const device_window& its) const;
  block_sink sink_of(const step& todo, bool unscaled);
  void send(stream_state& stream, size_t index);
  /// What was to start behind this step starts.
  void ended(stream_state& stream, size_t index);
  void take(stream_state& stream, const offer& x);
  turn read_some(stream_state& stream);
  void end_step(stream_state& stream, const reading& work);
  command_outcome commit_done(stream_state& stream);
  void free_scratch();
  void free_walked();
  void break_off(stream_state& stream, const caf::error& reason);
  void report(stream_state& stream, proto::RankReport::Phase how, const caf::error& error = {});
  void note_received(std::string_view route, uint64_t bytes);
  /// Writes what has been received into a report.
  template <class Message>
  void tell_received(Message& x) const {
    for (auto& [route, bytes] : received_by_) {
      auto& row = *x.add_received();
      row.set_route(route.data(), route.size());
      row.set_bytes(bytes);
    }
  }

  const proto::Collective& what() const { return plan_->collective(); }
  /// Where several are fused, the first one's.
  uint64_t input_address() const {
    return (fused() ? plan_->fused(0).input_addresses() : plan_->input_addresses()).Get(static_cast<int>(rank_));
  }
  uint64_t output_address() const {
    return (fused() ? plan_->fused(0).output_addresses() : plan_->output_addresses()).Get(static_cast<int>(rank_));
  }
  uint32_t world_size() const { return static_cast<uint32_t>(plan_->device_ids_size()); }
  uint64_t address_of(const block_range& range) const;
  std::byte* bytes_at(const block_range& range) const;
  uint64_t bytes_of(const block_range& range) const { return range.count * element_bytes_; }
  transfer_key key_of(size_t step_index, uint32_t source, uint32_t destination) const;
  std::string round_text() const; ///< "round 4 of 14"
  std::string where() const;      ///< The same, and of which operation and communicator.

  std::shared_ptr<const received_orders> received_; ///< Keeps the plan alive.
  const proto::OperationPlan* series_ = nullptr;    ///< What is to be walked, those behind it included.
  const proto::OperationPlan* plan_ = nullptr;      ///< Of it, what is being walked.
  std::vector<walked> walked_;
  phase phase_ = phase::waiting;
  uint32_t rank_ = 0;
  schedule_run run_;
  uint64_t element_bytes_ = 0;
  uint64_t input_bytes_ = 0;
  uint64_t output_bytes_ = 0;
  uint64_t shadow_ = 0; ///< Address in the scratch area; 0: none
  uint64_t scratch_ = 0;
  uint64_t staged_ = 0;   ///< The input times the rank's factor, scaled, and packed.
  uint64_t expected_ = 0; ///< Bytes of the output, or of its shadow, that have their memory.
  std::optional<reducer> combine_;
  double scale_ = 1;                             ///< Of every input before it is added: `reducer::scale_before`.
  std::map<transfer_key, size_t> sends_pending_; ///< Blocks that peers have not read: their steps.
  std::set<transfer_key> sent_along_;            ///< Blocks that have left with their offers.
  std::map<transfer_key, size_t> awaited_;       ///< Blocks of this round that have not been offered yet: their steps.
  std::list<reading> ready_;                     ///< Blocks that can be read now.
  std::map<transfer_key, reading> under_way_;    ///< Blocks whose bytes come by themselves.
  uint64_t bytes_received_ = 0;                  ///< Here and below: of the whole series.
  std::vector<std::pair<std::string_view, uint64_t>> received_by_; ///< The same, by route.
  uint64_t slices_ = 0; ///< Slices and chunks so far: progress within a block.
  uint64_t started_ns_ = 0;
  uint64_t walk_started_ns_ = 0,
           received_before_ = 0; ///< Of the walk that is under way: when, and before how many bytes.
  std::chrono::steady_clock::time_point last_move_;
  std::chrono::steady_clock::time_point stalled_until_; ///< A slow device: when it may go on.
};

} // namespace ringmaster
