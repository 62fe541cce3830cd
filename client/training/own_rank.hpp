#pragma once

#include "actors/scheduling/awake_clock.hpp"
#include "actors/training/training_rank.hpp"
#include "client/process_group.hpp"

#include <caf/scoped_actor.hpp>

#include <chrono>
#include <optional>

namespace ringmaster::training {

/// The rank that this process of a group plays in a training, whatever becomes of its device: where that is lost,
/// before the first step or in the middle, and its node starts another one, the rank joins again with it, between two
/// steps, as the rank that it was. The process may have stood still, and have been taken for dead.
class own_rank {
public:
  /// Plays with the device that the group began with. `with.device` is set here.
  own_rank(caf::actor_system& system, process_group& group, rank_settings with);
  own_rank(const own_rank&) = delete;

  /// Does what is to be done by now, after `limit` at most if nothing is; to be called again and again.
  void look(std::chrono::milliseconds limit);
  /// The trainer needs it no more, or its node has started no device again in time. It is heard of in `look`.
  bool over() const { return over_; }
  /// Why it is over, where it should not be.
  const caf::error& problem() const { return problem_; }
  /// Has the trainer let it go behind the step, when the others have what it has.
  void ask_to_leave();
  /// It takes part no more.
  void leave();

private:
  void start();
  void ended(const caf::error& reason);
  void look_for_device();

  caf::actor_system& system_;
  process_group& group_;
  rank_settings settings_;
  caf::scoped_actor self_;
  caf::actor handle_;
  bool over_ = false, leaves_ = false;
  caf::error problem_;
  std::optional<awake_clock::time_point> device_by_; ///< It has none; then it is over.
  awake_clock::time_point look_at_;                  ///< For one.
};

} // namespace ringmaster::training
