#pragma once

#include "actors/training/interfaces.hpp"
#include <ringmaster/strategy/range_set.hpp>

#include <functional>
#include <optional>
#include <string>

namespace ringmaster::training {

struct step_record_settings {
  coordinator_actor coordinator;
  caf::timespan limit = std::chrono::seconds{30}; ///< For its word that the journal has a step.
  std::function<void(const std::string&)>
    note;                          ///< What becomes of it: when it begins to lack steps, and has them again.
  std::function<void()> confirmed; ///< The latest is there, or is not awaited any more.
};

/// What the journal is told of a training: a record a step, one after the other, so whenever the coordinator's process
/// ends its log lacks one at most. A journal that fails, or none, stops no training. Lives in the TRAINER.
class step_record {
public:
  step_record(trainer_actor::pointer self, step_record_settings settings)
    : self_(self), settings_(std::move(settings)) {}
  step_record(const step_record&) = delete;

  /// There is a journal, as far as is known.
  bool is_kept() const { return is_kept_; }
  /// None is awaited before.
  void put(proto::TrainingStep x);
  bool is_awaited() const { return latest_.has_value(); }
  /// Gives up what is awaited beyond its limit, and says whether there was any.
  bool expire();
  /// So much of the time nobody could hear.
  void excuse(caf::timespan late);
  /// Which steps it lacks, where the run ends.
  void tell_missing() const;

private:
  struct recording {
    uint64_t number, step;
    caf::actor_clock::time_point due; ///< Until when it is waited for.
  };

  /// Of the recording of that number.
  void answered(uint64_t number, const caf::error& problem);
  void tell(uint64_t step, const caf::error& problem);

  trainer_actor::pointer self_;
  step_record_settings settings_;
  bool is_kept_ = true;
  std::optional<recording> latest_; ///< That the journal has not confirmed.
  uint64_t recordings_ = 0;
  caf::error problem_; ///< Why the journal may lack steps, as it was reported; none: it has all.
  range missing_;      ///< Steps that it may lack meanwhile.
};

} // namespace ringmaster::training
