#pragma once

#include "actors/training/messages.hpp"
#include "actors/training/trainer_settings.hpp"
#include "training/computed/model_parts.hpp"

#include <optional>
#include <vector>

namespace ringmaster::training {

/// What the ranks of an attempt report when they finish the step, and whether the step counts. Pure.
class step_results {
public:
  explicit step_results(std::shared_ptr<const training_job> job) : job_(std::move(job)) {}

  /// A new attempt, of this number of ranks.
  void start(uint32_t ranks);
  /// Whether what it reports can be of this model.
  bool is_possible(const rank_ended& x) const;
  void add(const rank_ended& x);
  bool has_finished(uint32_t rank) const;
  bool all_have_finished() const;
  std::vector<bool> unfinished() const;
  /// Whether the step counts. Errors: aborted, for a loss that is not a finite number, with the rank and the layer;
  /// invalid_argument, for a value that was sent and not received, and for a part of the model that no rank has made.
  caf::error check(uint64_t step, const caf::error& left_behind);
  /// Of a step that counts; `attempts` of it, this one included.
  step_report report(uint64_t step, uint32_t attempts) const;
  /// By rank, the parts of the model as it is after the step. Once.
  std::vector<std::vector<kept_part>> take_made();
  /// Where they were asked for: in the order of their ends, from time 0 on. Once.
  std::vector<event> take_events();

private:
  struct rank_result {
    std::optional<loss_sums> losses{}; ///< None: it has not finished the step.
    uint32_t strays_at = no_layer;     ///< As rank_ended has it.
    std::vector<kept_part> made{};
  };

  /// Whether the ranks have all of the model as it is after the step.
  caf::error check_model();
  caf::error not_finite(uint64_t step, size_t rank) const;

  std::shared_ptr<const training_job> job_;
  std::vector<rank_result> ranks_;
  std::vector<std::vector<kept_part>> checked_; ///< What ranks had made at the last check: all of the model.
  uint64_t bytes_peak_ = 0, bytes_needed_ = 0;  ///< The largest of any rank.
  std::vector<event> events_;
  std::chrono::steady_clock::time_point started_;
};

} // namespace ringmaster::training
