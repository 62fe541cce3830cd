#pragma once

#include "actors/training/interfaces.hpp"
#include "actors/training/steps/step_change.hpp"
#include "actors/training/trainer_settings.hpp"
#include "training/computed/model_parts.hpp"

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::training {

/// Collects the bytes of parts of the model from ranks: for the host's snapshot, or for a rank that has them cut in
/// another way. Several collections may be under way at once, of several steps. Lives in the TRAINER.
class part_gatherings {
public:
  struct source {
    kept_part what;
    device_id device;
    rank_actor rank;
  };
  using found_parts = std::map<kept_part, byte_block>;
  using done_function = std::function<void(const caf::expected<found_parts>&)>;

  /// `has_nothing` is called for a device that was asked for a part of the model as of that step, and does not have it
  /// any longer, or does not answer.
  part_gatherings(trainer_actor::pointer self, std::function<void(device_id, uint64_t step)> has_nothing)
    : self_(self), has_nothing_(std::move(has_nothing)) {}
  part_gatherings(const part_gatherings&) = delete;

  /// `then` gets these parts of the model as it was before that step, and `available` with them. Errors: device_lost,
  /// with a rank that does not have its part, or does not answer before `due`.
  void gather(uint64_t step, found_parts available, const std::vector<source>& from, caf::actor_clock::time_point due,
              done_function then);
  /// Requests whose limit has passed fail.
  void expire();
  /// This process was paused for so long that limits are extended by this time.
  void excuse(caf::timespan late);

private:
  struct gathering {
    uint64_t step = 0;
    caf::actor_clock::time_point due{};
    done_function then{};
    found_parts found{};
    std::map<kept_part, device_id> awaited{};
    caf::error problem{};
  };

  void arrived(uint64_t number, const kept_part& what, const byte_block& x);
  void failed(uint64_t number, const kept_part& what, std::string_view why);
  void finish(uint64_t number);

  trainer_actor::pointer self_;
  std::function<void(device_id, uint64_t step)> has_nothing_;
  std::map<uint64_t, gathering> all_; ///< By number.
  uint64_t made_ = 0;
};

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
  /// Where the model as of the run's step is.
  step_change::model_location location() const;
  const model_snapshot& latest() const { return latest_; }
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
