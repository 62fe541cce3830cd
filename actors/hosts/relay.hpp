#pragma once

#include "actors/calls/wall_clock.hpp"
#include "messages/interfaces.hpp"
#include "runtime/health/progress_desk.hpp"
#include "runtime/operations/report_desk.hpp"

#include <caf/actor_system.hpp>
#include <caf/timespan.hpp>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace ringmaster {

class relay_directory;

/// Between the communicators and the streams of a node's devices. What a communicator says to all of them comes as one
/// message and goes on to each; what they say to it is gathered where it waits for all of them. So control between
/// processes costs messages a process, not a rank, and a node answers for its devices.
///
/// Two actors in one: the handle leads to an entrance, which forwards to the streams at once, on the thread that
/// delivers the message. So what is said to streams by way of the relay and by way of their devices comes in the order
/// in which it was sent; with a mailbox between, a copy that was called behind an operation could overtake its plan.
/// What the streams answer goes to the mailbox of a RELAY behind the entrance. Their end is one. The entrance also says
/// at once that the process lives if progress requests wait there: after a pause several come together, and the threads
/// that handle them may get no processor for some time.
/// `node`, `clock`: its node, and that node's wall clock, for comparison with others.
/// `devices`: where the relay's devices are found; null: a new one.
relay_actor make_relay(caf::actor_system& system, caf::timespan report_limit, node_id node = {}, wall_clock clock = {},
                       std::shared_ptr<relay_directory> devices = {});

/// Where the devices and their streams are, which the entrance and the actor look up on different threads.
class relay_directory {
public:
  void add(const proto::DeviceReady& x, const device_handle& handle);
  /// Null: it has died, and its monitor says so.
  caf::strong_actor_ptr device(device_id id) const;
  caf::strong_actor_ptr stream_of(device_id id) const;
  /// Those that live, as they have joined.
  std::vector<std::pair<proto::DeviceReady, device_handle>> living() const;

  caf::actor_addr entrance;                 ///< Set before the first message.
  std::atomic<uint32_t> unread_requests{0}; ///< Progress requests that have come, and that the actor has not handled.

private:
  struct known_device {
    caf::actor_addr device;
    caf::actor_addr stream;
    proto::DeviceReady ready;
    std::shared_ptr<const memory_place> memory;
  };

  mutable std::mutex mutex_;
  std::map<device_id, known_device> devices_; ///< Those that live, and some that did.
};

/// The state of the RELAY behind the entrance.
class relay_state {
public:
  static inline const char* name = "relay";

  relay_actor::pointer self = nullptr;
  caf::timespan report_limit; ///< For devices to say how far they are.
  std::shared_ptr<relay_directory> streams;
  node_id node;
  wall_clock clock;

  void expect(const operation_orders& x, const std::vector<device_id>& devices);
  void stop(const proto::Quiesce& x);
  void on_arrival(const shared_memory_arrival& x);
  void on_report(const proto::RankReport& x);
  void ask_progress(const proto::ProgressRequest& x, const std::vector<device_id>& devices);
  void on_progress(const proto::Progress& x);
  void expire(uint64_t number);
  void on_down(const caf::down_msg& x);
  /// To the communicator.
  template <class T>
  void answer(communicator_id communicator, T&& what);

private:
  void meet(communicator_id communicator);
  void tell(communicator_id communicator, std::vector<proto::RankReport> reports);
  void report_idle();
  void report(const progress_desk::key& request, std::optional<proto::ProgressReport> what);
  template <class T>
  void send_to(const communicator_actor& whom, T&& what,
               caf::message_priority priority = caf::message_priority::normal);

  std::map<communicator_id, communicator_actor> communicators_;
  report_desk reports_;
  progress_desk progress_;
  std::map<progress_desk::key, communicator_actor> askers_; ///< Of the open requests.
  std::map<uint64_t, progress_desk::key> timers_;           ///< By their number.
  uint64_t last_timer_ = 0;
  std::deque<progress_desk::key> idle_requests_; ///< The coordinator's, oldest first; those that are open.
};

} // namespace ringmaster
