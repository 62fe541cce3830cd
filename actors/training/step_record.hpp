#pragma once

#include "actors/training/step_exchanges.hpp"
#include "actors/training/trainer_settings.hpp"
#include <ringmaster/strategy/range_set.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ringmaster::training {

struct step_record_settings {
  coordinator_actor coordinator;
  caf::timespan limit = std::chrono::seconds{30}; ///< For the answer that the journal has a step.
  std::function<void(const std::string&)>
    note;                          ///< For the user: when the journal starts to lack steps, and has them again.
  std::function<void()> confirmed; ///< The journal has the latest step, or it is no longer awaited.
};

/// The journal's records of a training: one a step, each after the one before is written, so the log of the
/// coordinator's process lacks one step at most when that process exits. Training continues without a journal. Lives in
/// the TRAINER.
class step_record {
public:
  step_record(trainer_actor::pointer self, step_record_settings settings)
    : self_(self), settings_(std::move(settings)) {}
  step_record(const step_record&) = delete;

  /// Whether there is a journal, as far as is known.
  bool is_kept() const { return is_kept_; }
  /// `x` has the samples of the step; the rest of its record is added. No other record is awaited.
  void put(proto::TrainingStep x, const running_step& step, std::string_view strategy_name, const step_report& report);
  bool is_awaited() const { return latest_.has_value(); }
  /// Stops waiting for a record after its limit, and returns whether there was one.
  bool expire();
  /// This process was paused: limits are extended by this time.
  void excuse(caf::timespan late);
  /// Notes which steps the journal lacks when the run ends.
  void note_missing() const;

private:
  struct recording {
    uint64_t number, step;
    caf::actor_clock::time_point due; ///< It is awaited until then.
  };

  /// The answer for the record of that number.
  void answered(uint64_t number, const caf::error& problem);
  void note_change(uint64_t step, const caf::error& problem);

  trainer_actor::pointer self_;
  step_record_settings settings_;
  bool is_kept_ = true;
  std::optional<recording> latest_; ///< The record that the journal has not confirmed.
  uint64_t recordings_ = 0;
  caf::error problem_; ///< Why the journal may lack steps, as noted for the user; none: it has all.
  range missing_;      ///< Steps that it may lack.
};

} // namespace ringmaster::training
