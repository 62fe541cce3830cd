#pragma once

#include "actors/scheduling/awake_clock.hpp"
#include "actors/training/training_rank.hpp"
#include "client/process_group.hpp"

#include <caf/scoped_actor.hpp>

#include <chrono>
#include <optional>

namespace ringmaster::training {

/// The rank of this process, one of a group, in a training. If its device is lost, before the first step or later, and
/// its node starts another one, the rank joins again with that device between two steps, at the same place. The device
/// can also be taken for lost because this process was paused.
class own_rank {
public:
  /// Starts with this process's device in the group. `with.device` is set here.
  own_rank(caf::actor_system& system, process_group& group, rank_settings with);
  own_rank(const own_rank&) = delete;

  /// Handles what has happened, or waits for it up to `limit`. To be called repeatedly.
  void poll(std::chrono::milliseconds limit);
  /// Whether the rank has exited for good: the trainer has let it go, or its node has not started a device in time.
  /// Changes in `poll`.
  bool over() const { return over_; }
  /// Why it is over before the trainer has let it go.
  const caf::error& problem() const { return problem_; }
  /// Asks the trainer to let it go after the step, when others have its parts of the model.
  void ask_to_leave();
  /// Stops the rank.
  void leave();

private:
  void start();
  void ended(const caf::error& reason);
  void search_device();

  caf::actor_system& system_;
  process_group& group_;
  rank_settings settings_;
  caf::scoped_actor self_;
  caf::actor handle_;
  bool over_ = false, leaves_ = false;
  caf::error problem_;
  std::optional<awake_clock::time_point> device_by_; ///< Set while it has no device: it is over then.
  awake_clock::time_point search_at_;                ///< The next search for a device.
};

} // namespace ringmaster::training
