#pragma once

#include "actors/scheduling/awake_actor_clock.hpp"

#include <caf/scheduler/coordinator.hpp>

#include <thread>

namespace ringmaster {

/// CAF's scheduler with an `awake_actor_clock` in place of its own clock, so that all time limits of actors, CAF's own
/// connection timeout included, exclude the periods in which this process was paused.
template <class Policy>
class awake_coordinator final : public caf::scheduler::coordinator<Policy> {
public:
  using super = caf::scheduler::coordinator<Policy>;

  explicit awake_coordinator(caf::actor_system& sys) : super(sys) {}

  static caf::actor_system::module* make(caf::actor_system& sys, caf::detail::type_list<>) {
    return new awake_coordinator(sys);
  }

protected:
  void start() override {
    timer_ = std::thread{[this] {
      caf::detail::set_thread_name("clock");
      this->system().thread_started();
      clock_.run();
      this->system().thread_terminates();
    }};
    super::start();
  }

  void stop() override {
    super::stop();
    clock_.stop();
    timer_.join();
  }

  caf::detail::thread_safe_actor_clock& clock() noexcept override { return clock_; }

private:
  awake_actor_clock clock_;
  std::thread timer_;
};

} // namespace ringmaster
