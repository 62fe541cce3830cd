#pragma once

#include "runtime/schedule/schedule.hpp"

#include <caf/expected.hpp>

#include <functional>
#include <optional>
#include <vector>

namespace ringmaster {

/// One rank's walk over its schedule, round by round: which steps start when. Who walks does the steps, in any order
/// and by any means, and says when each has ended; a stream does it with blocks that travel, a test over plain buffers.
/// Pure.
///
///   begin -> start_round -> ended, ended, ... -> round_over -> next_round -> start_round ... -> at_end
///
/// Of a long schedule only a window of steps is kept: a thousand ranks' whole schedules would take more memory than all
/// the rest, and planning again takes little time.
class schedule_run {
public:
  /// The rank's whole schedule, the same each time.
  using planner = std::function<caf::expected<schedule>()>;
  static constexpr size_t window_steps = 256; ///< And the rest of the last one's round.

  /// From the first round on. Errors: the planner's.
  caf::error begin(planner plan);
  /// No started step finishes after this.
  void stop();
  /// Releases the steps: the object may be kept long after its end.
  void forget_steps();

  uint32_t round() const { return round_; } ///< Rounds done.
  uint32_t rounds() const { return window_.rounds; }
  uint64_t scratch_count() const { return window_.scratch_count; }
  /// Whether there is no step at all.
  bool empty() const { return window_.steps.empty(); }

  bool started() const { return started_; } ///< A round is under way.
  bool at_end() const { return !started_ && round_ == window_.rounds; }
  /// Begins the round. Returns the steps that start with it. Errors: the planner's.
  caf::expected<std::vector<size_t>> start_round();
  /// Returns the step that starts after it, if one does.
  std::optional<size_t> ended(size_t index);
  bool round_over() const { return started_ && open_ == 0; }
  void next_round();

  // Steps are known by their place in the window; it stays as it is while a round is under way.
  const step& at(size_t index) const { return window_.steps[index]; }
  size_t index_of(const step& x) const { return static_cast<size_t>(&x - window_.steps.data()); }
  /// Counts the blocks between this rank and the step's peer, by direction.
  uint32_t block_of(size_t index) const { return blocks_[index]; }

private:
  caf::error plan_window();

  planner plan_;
  schedule window_;           ///< Of its steps, those of the window.
  size_t steps_before_ = 0;   ///< The window.
  bool steps_behind_ = false; ///< The window.
  std::vector<uint32_t> blocks_;
  uint32_t round_ = 0;
  size_t next_ = 0; ///< The first step of the next round, in the window.
  size_t open_ = 0; ///< Steps that were started and have not ended.
  bool started_ = false;
};

} // namespace ringmaster
