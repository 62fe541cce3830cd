#pragma once

#include "messages/interfaces.hpp"
#include "runtime/epochs/epoch_change.hpp"
#include "runtime/operations/call_desk.hpp"

#include <caf/message_priority.hpp>
#include <caf/timespan.hpp>

#include <utility>

namespace ringmaster {

/// Ticks at which a communicator looks after its members: the message `tick` comes in each interval while operations
/// run, members change, or ranks wait for each other's calls.
class watch_ticks {
public:
  watch_ticks(communicator_actor::pointer self, caf::timespan interval, const epoch_change& epochs,
              const call_desk& calls)
    : self_(self), interval_(interval), epochs_(epochs), calls_(calls) {}

  bool something_runs() const { return !epochs_.operations().nothing_in_flight() || epochs_.state().is_changing(); }
  /// Also while ranks wait for others' calls: a process that is paused makes none.
  bool are_needed() const { return something_runs() || calls_.open() > 0; }
  /// To be called after each event that may make ticks needed.
  void keep_on() {
    if (is_asked_ || !are_needed())
      return;
    is_asked_ = true;
    self_->delayed_send<caf::message_priority::high>(self_, interval_, atom::tick_v);
  }
  /// A tick has come. Returns whether it was asked for: any process of the cluster can send one.
  bool note_tick() { return std::exchange(is_asked_, false); }

private:
  communicator_actor::pointer self_;
  caf::timespan interval_;
  const epoch_change& epochs_;
  const call_desk& calls_;
  bool is_asked_ = false;
};

} // namespace ringmaster
