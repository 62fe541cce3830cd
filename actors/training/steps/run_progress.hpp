#pragma once

#include "runtime/invariants/ensure.hpp"

#include <caf/error.hpp>

#include <cstdint>
#include <string>

namespace ringmaster::training {

/// How far a training run is: its phase, its step, and the attempt at it. The phases are drawn in step_change.hpp; this
/// object refuses every transition that is not in the drawing. Pure. Belongs to a `step_change`.
class run_progress {
public:
  enum class phase : uint8_t { gathering, stepping, recovering, finishing, over };

  /// Of a run of `steps`, of which `first` were done before.
  run_progress(uint64_t first, uint64_t steps) : steps_(steps), step_(first) {}

  phase now() const { return phase_; }
  bool is_running() const { return phase_ == phase::stepping || phase_ == phase::finishing; }
  bool is_over() const { return phase_ == phase::over; }
  uint64_t step() const { return step_; }
  bool all_steps_are_done() const { return step_ == steps_; }
  /// The number of the latest attempt, under way or given up; of all steps.
  uint64_t attempt() const { return attempt_; }
  /// Attempts at this step.
  uint32_t attempts() const { return attempts_; }
  bool is_latest(uint64_t attempt) const { return attempt == attempt_; }
  /// Whether ranks work on this attempt.
  bool is_current(uint64_t attempt) const { return is_running() && attempt == attempt_; }
  /// Why the run is to end before its last step; none: it continues.
  const caf::error& ending() const { return ending_; }

  void enter(phase next);
  /// Another attempt at this step; false: there were `attempts_max` already.
  bool try_again(uint32_t attempts_max) { return ++attempts_ <= attempts_max; }
  /// The next attempt gets its number. Answers to requests of the one before no longer count.
  uint64_t start_attempt() { return ++attempt_; }
  void step_committed();
  /// The steps from this one on are done again.
  void go_back(uint64_t step);
  void set_ending(const caf::error& why);
  /// What holds between any two events.
  void check() const;
  /// For the log of a broken invariant.
  std::string state_text() const;

private:
  void ensure(bool holds, std::string_view what,
              const std::source_location& where = std::source_location::current()) const {
    ensure_of(*this, holds, what, where);
  }

  uint64_t steps_;
  phase phase_ = phase::gathering;
  uint64_t step_;
  uint64_t attempt_ = 0;
  uint32_t attempts_ = 0;
  caf::error ending_;
};

} // namespace ringmaster::training
