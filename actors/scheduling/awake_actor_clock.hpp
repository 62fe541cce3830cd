#pragma once

#include "actors/scheduling/awake_clock.hpp"

#include <caf/detail/thread_safe_actor_clock.hpp>
#include <caf/scheduler/coordinator.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace ringmaster {

/// CAF's timeouts and delayed messages by the `awake_clock`. One thread owns the schedule, in `run`; others hand it
/// events. It also ticks for the `awake_clock`. An event that is due later than the thread's next look does not wake
/// it: most timeouts are cancelled long before they are due.
class awake_actor_clock final : public caf::detail::thread_safe_actor_clock {
public:
  time_point now() const noexcept override;

  void set_ordinary_timeout(time_point t, caf::abstract_actor* self, caf::atom_value type, uint64_t id) override;
  void set_multi_timeout(time_point t, caf::abstract_actor* self, caf::atom_value type, uint64_t id) override;
  void set_request_timeout(time_point t, caf::abstract_actor* self, caf::message_id id) override;
  void cancel_ordinary_timeout(caf::abstract_actor* self, caf::atom_value type) override;
  void cancel_request_timeout(caf::abstract_actor* self, caf::message_id id) override;
  void cancel_timeouts(caf::abstract_actor* self) override;
  void schedule_message(time_point t, caf::strong_actor_ptr receiver, caf::mailbox_element_ptr content) override;
  void schedule_message(time_point t, caf::group target, caf::strong_actor_ptr sender, caf::message content) override;
  void cancel_all() override;

  /// Returns after `stop`.
  void run();
  void stop();

private:
  static constexpr size_t queued_max = 1024; ///< Events that wait for the thread's next look; then it is woken.

  void push(event* what, time_point due);
  void take(unique_event_ptr what);

  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<unique_event_ptr> queue_;
  time_point next_look_ = time_point::max(); ///< While the thread is busy: each event has it look once more.
  bool must_look_ = false, stopped_ = false;
};

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
