#pragma once

#include "messages/type_ids.hpp"
#include "runtime/invariants/ensure.hpp"

#include <caf/behavior.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/send.hpp>
#include <caf/skip.hpp>
#include <caf/timespan.hpp>

#include <chrono>
#include <optional>
#include <utility>

namespace ringmaster {

/// The faults that a stream was asked to suffer; see FaultRequest. The stream and its commands ask it before each step
/// that a fault may delay or prevent.
///
///   open --kill, or damaged memory--> closed for good
///   open --hang--> closed --the time is over--> open
class fault_gate {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// No command may start or go on.
  bool is_closed() const { return is_closed_; }
  void close() { is_closed_ = true; }
  void open() {
    ensure(is_closed_, "a gate is opened that was closed");
    is_closed_ = false;
  }

  /// The fault strikes when a collective reaches the fault's step.
  void arm(proto::FaultRequest x) { armed_ = std::move(x); }
  /// The fault that strikes when `steps` rounds are done. It strikes once.
  std::optional<proto::FaultRequest> take_at(uint32_t steps) {
    if (!armed_ || armed_->step() != steps)
      return std::nullopt;
    return std::exchange(armed_, std::nullopt);
  }
  /// The same for an operation without rounds: any step after the first.
  std::optional<proto::FaultRequest> take_after_start() {
    if (!armed_ || armed_->step() == 0)
      return std::nullopt;
    return std::exchange(armed_, std::nullopt);
  }
  /// A fault strikes that was not armed. An armed one is dropped.
  void disarm() { armed_.reset(); }

  /// From now on each round of a collective is delayed.
  void slow(caf::timespan delay) {
    ensure(delay.count() >= 0, "a delay is no negative time");
    delay_ = delay;
  }
  bool is_slow() const { return delay_.count() > 0; }
  caf::timespan delay() const { return delay_; }
  /// A fault is armed, or rounds are delayed: commands do nothing in advance.
  bool is_set() const { return armed_ || is_slow(); }

private:
  std::optional<proto::FaultRequest> armed_;
  caf::timespan delay_{0};
  bool is_closed_ = false;
};

/// The actor handles no messages: they stay in its mailbox. It can still be ended from outside. After `how_long` (0:
/// never) `go_on` is called, and the actor handles the messages that have come, in their order.
template <class Self, class Function>
void hang(Self* self, caf::timespan how_long, Function go_on) {
  self->set_default_handler(caf::skip);
  if (how_long.count() == 0)
    return self->do_become(caf::behavior{[](atom::flush) {}}, true);
  auto awake = [self, go_on](atom::flush) {
    self->set_default_handler(caf::print_and_drop);
    self->unbecome();
    go_on();
  };
  self->do_become(caf::behavior{awake}, false);
  auto untyped = caf::actor_cast<caf::actor>(caf::strong_actor_ptr{self->ctrl()}); // no interface has the message
  caf::delayed_anon_send(untyped, how_long, atom::flush_v);
}

} // namespace ringmaster
