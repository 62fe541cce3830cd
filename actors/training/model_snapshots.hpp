#pragma once

#include "actors/training/part_gatherings.hpp"
#include "actors/training/step_change.hpp"
#include "actors/training/trainer_settings.hpp"
#include "training/computed/model_parts.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>

namespace ringmaster::training {

/// Where the model is between steps: which rank has which part, and the host's snapshot, from which lost parts are
/// restored and checkpoints are written. Lives in the TRAINER.
class model_snapshots {
public:
  using found_parts = part_gatherings::found_parts;
  using taken_function = std::function<void(const caf::expected<model_snapshot>&)>;

  /// In `model_parts`: the part is in the host's snapshot.
  static constexpr uint32_t on_host = UINT32_MAX;

  /// `first`: the model that the run starts with. `actor_of` knows the actor of each rank; `lost_parts` is called for
  /// a rank that does not have its parts of the model as of this step.
  model_snapshots(trainer_actor::pointer self, std::shared_ptr<const trainer_settings> settings,
                  const step_change& change, model_snapshot first, std::function<rank_actor(device_id)> actor_of,
                  std::function<void(device_id, uint64_t step)> lost_parts);

  /// The parts of the model as of this step: the owner is an index in `ranks().members()`, or `on_host`.
  model_parts parts(uint64_t step, bool with_leavers = true) const;
  const model_snapshot& latest() const { return latest_; }
  /// The step whose model is restored when parts of a later one are lost; 0: the first weights.
  uint64_t latest_step() const { return latest_.parts.empty() ? 0 : latest_.step; }
  bool has(uint64_t step) const { return latest_.step == step && !latest_.parts.empty(); }
  /// Whether the watcher gets the model as of this step when the run continues.
  bool is_due(uint64_t step) const;
  /// Whether the watcher is to get the model as of this step when the run ends with it.
  bool is_wanted(uint64_t step) const { return settings_->image_every != 0 && reported_ != step; }

  /// Takes a snapshot of all of the model, while ranks continue. Errors: device_lost, if a part is missing; aborted, if
  /// the run went back to an earlier step meanwhile.
  void take(uint64_t step, taken_function then);
  /// A step was committed. Takes a snapshot if one is due, or if the loss of one rank could lose a part.
  void keep(uint64_t step);
  /// The same after a rank was lost, which may have been asked for its parts.
  void repeat(uint64_t step);
  /// Gives the watcher the snapshot, once.
  void report(const model_snapshot& x);
  /// The bytes of these parts, from ranks and host, within `patience`.
  void collect(uint64_t step, const std::vector<model_parts::source>& wanted, part_gatherings::done_function then);
  /// Requests whose limit has passed fail.
  void expire() { gatherings_.expire(); }
  /// This process was paused: limits are extended.
  void excuse(caf::timespan late) { gatherings_.excuse(late); }

private:
  /// Whether this process has memory for a second copy of the model; notes when that changes.
  bool has_room_for_mirror();

  trainer_actor::pointer self_;
  std::shared_ptr<const trainer_settings> settings_;
  const step_change& change_;
  std::function<rank_actor(device_id)> actor_of_;
  part_gatherings gatherings_;
  model_snapshot latest_;
  uint64_t reported_;         ///< The step of the latest snapshot that the watcher has.
  bool lacks_mirror_ = false; ///< There was no memory for it at `mirror_checked_at_`.
  std::optional<caf::actor_clock::time_point> mirror_checked_at_;
};

} // namespace ringmaster::training
