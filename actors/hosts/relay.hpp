#pragma once

#include "messages/interfaces.hpp"
#include "runtime/health/progress_desk.hpp"
#include "runtime/operations/report_desk.hpp"

#include <caf/timespan.hpp>

#include <map>
#include <optional>
#include <vector>

namespace ringmaster {

/// The state of a RELAY: between the communicators and the streams of a node's devices. What a communicator says to
/// all of them comes as one message and goes on to each; what they say to it is gathered where it waits for all of
/// them. So control between processes costs messages a process, not a rank, and a node answers for its devices.
class relay_state {
public:
  static inline const char* name = "relay";

  relay_actor::pointer self = nullptr;
  caf::timespan report_limit; ///< For devices to say how far they are.

  void device_ready(const proto::DeviceReady& x, const device_handle& handle);
  /// To these devices' streams.
  template <class T>
  void pass_on(const T& what, const std::vector<device_id>& devices);
  void expect(const operation_orders& x, const std::vector<device_id>& devices);
  void stop(const proto::Quiesce& x);
  /// To the communicator.
  template <class T>
  void answer(communicator_id communicator, T&& what);
  void on_arrival(const joint_arrival& x);
  void on_report(const proto::RankReport& x);
  void ask_progress(const proto::ProgressRequest& x, const std::vector<device_id>& devices);
  void on_progress(const proto::Progress& x);
  void expire(uint64_t number);
  void on_down(const caf::down_msg& x);

private:
  void meet(communicator_id communicator);
  void tell(communicator_id communicator, std::vector<proto::RankReport> reports);
  void report(const progress_desk::key& request, std::optional<proto::ProgressReport> what);
  caf::strong_actor_ptr stream_of(device_id device) const;

  std::map<device_id, caf::actor_addr> streams_; ///< Of the devices that live, and of some that did.
  std::map<communicator_id, communicator_actor> communicators_;
  report_desk reports_;
  progress_desk progress_;
  std::map<progress_desk::key, communicator_actor> askers_; ///< Of the open requests.
  std::map<uint64_t, progress_desk::key> timers_;           ///< By their number.
  uint64_t last_timer_ = 0;
};

relay_actor::behavior_type relay(relay_actor::stateful_pointer<relay_state> self, caf::timespan report_limit);

} // namespace ringmaster
