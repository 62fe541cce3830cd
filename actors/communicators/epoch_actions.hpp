#pragma once

#include "actors/communicators/client_waiters.hpp"
#include "actors/communicators/rank_call_server.hpp"
#include "actors/communicators/shared_memory_run.hpp"
#include "actors/communicators/status_reporter.hpp"
#include "actors/communicators/watch_ticks.hpp"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

/// Carries out what `epoch_change` decides, one decision after the other: what streams, devices, the coordinator,
/// clients and the journal are sent. Every event that may change a communicator's members or end its operations goes
/// through here.
class epoch_actions {
public:
  epoch_actions(communicator_actor::pointer self, const communicator_options& options, epoch_change& epochs,
                member_directory& members, member_watch& watch, operation_runner& runner, rank_call_server& calls,
                shared_memory_run& shared_memory, client_waiters& waiters, status_reporter& reporter,
                watch_ticks& ticks, outbox& out)
    : self_(self), options_(options), epochs_(epochs), members_(members), watch_(watch), runner_(runner), calls_(calls),
      shared_memory_(shared_memory), waiters_(waiters), reporter_(reporter), ticks_(ticks), out_(out) {}

  /// Reports an event to `epoch_change` and carries out what it decides, after sending the plans that have gathered:
  /// they were made for the members of now.
  template <class Event>
  void change(Event event) {
    runner_.flush();
    carry_out(event(epochs_));
  }
  /// Then clients that wait are answered and members that are to leave do, if nothing is in flight.
  void carry_out(epoch_change::decisions decisions);

  void add_member(const gpu_sim::DeviceMetadata& metadata, const device_handle& handle);
  /// How members were lost.
  struct loss {
    std::vector<device_id> devices; ///< For one cause; others than members are ignored.
    proto::Verdict::Kind kind = proto::Verdict::CRASHED;
    std::string cause;
    std::string noticed_by;
    bool fence = false;                             ///< They may be running: the coordinator ends them.
    std::optional<proto::Suspicion> suspicion = {}; ///< If that is how it was noticed.
  };
  /// The coordinator hears of it.
  void lose(const loss& x);
  /// A member has left in good order.
  void note_left(device_id device, const std::string& cause);
  /// Every survivor hears of it, and the journal.
  void publish(const proto::Verdict& x);
  /// Without a reason the members stay after all.
  void leave(const proto::LeaveRequest& x, client_waiters::leave_promise promise);
  void destroy(const std::string& reason, client_waiters::destroy_promise promise);
  /// Devices are sent the members of now, or none after the end.
  void announce_members();

private:
  void act(epoch_change::stop_streams& x);
  void act(epoch_change::release_operation& x);
  void act(epoch_change::outputs_changed& x);
  void act(epoch_change::operation_ended& x);
  void act(epoch_change::spare_wanted& x);
  void act(epoch_change::epoch_opened& x);
  void act(epoch_change::members_left& x);
  void act(epoch_change::end_began& x);
  void act(epoch_change::communicator_aborted& x);
  void act(epoch_change::communicator_gone& x);
  void act(epoch_change::verdict_given& x) { publish(x.what); }
  void tell_coordinator(const loss& x, device_id device);

  communicator_actor::pointer self_;
  const communicator_options& options_;
  epoch_change& epochs_;
  member_directory& members_;
  member_watch& watch_;
  operation_runner& runner_;
  rank_call_server& calls_;
  shared_memory_run& shared_memory_;
  client_waiters& waiters_;
  status_reporter& reporter_;
  watch_ticks& ticks_;
  outbox& out_;
  std::deque<epoch_change::decision> decisions_; ///< To be carried out.
  bool is_carrying_out_ = false;
};

} // namespace ringmaster
