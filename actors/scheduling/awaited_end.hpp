#pragma once

#include <caf/actor_control_block.hpp>
#include <caf/actor_registry.hpp>
#include <caf/actor_system.hpp>
#include <caf/attachable.hpp>
#include <caf/monitorable_actor.hpp>

namespace ringmaster {

/// The system's end waits until all monitors of an actor have got its down message. CAF 0.17 counts it as ended
/// before it tells them. For one with a thread of its own that is monitored by another process that may be too soon:
/// the word comes to CAF's connections when these have ended, stays there, keeps the actor, and the system waits for
/// its thread for ever.
class awaited_end : public caf::attachable {
public:
  /// `x` must live.
  static void of(const caf::strong_actor_ptr& x) {
    caf::actor_cast<caf::abstract_actor*>(x)->attach(caf::attachable_ptr{new awaited_end{x->home_system->registry()}});
  }

  awaited_end(const awaited_end&) = delete;
  awaited_end& operator=(const awaited_end&) = delete;
  ~awaited_end() override { running_.dec_running(); } // with the list of its monitors

private:
  explicit awaited_end(caf::actor_registry& running) : running_(running) { running_.inc_running(); }

  caf::actor_registry& running_;
};

} // namespace ringmaster
