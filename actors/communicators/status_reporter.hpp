#pragma once

#include "actors/communicators/call_limits.hpp"
#include "actors/communicators/client_waiters.hpp"
#include "actors/communicators/member_directory.hpp"
#include "actors/communicators/member_watch.hpp"
#include "actors/communicators/operation_outcomes.hpp"
#include "actors/communicators/outbox.hpp"
#include "actors/communicators/shared_memory_run.hpp"
#include "runtime/epochs/communicator_status.hpp"

#include <string>

namespace ringmaster {

/// Reports a communicator's status, now or when nothing is in flight.
class status_reporter {
public:
  status_reporter(communicator_actor::pointer self, const communicator_options& options, const epoch_change& epochs,
                  const member_directory& members, const member_watch& watch, const call_desk& calls,
                  const shared_memory_run& shared_memory, operation_outcomes& outcomes, client_waiters& waiters,
                  call_limits& limits, outbox& out)
    : self_(self), options_(options), epochs_(epochs), members_(members), watch_(watch), calls_(calls),
      shared_memory_(shared_memory), outcomes_(outcomes), waiters_(waiters), limits_(limits), out_(out) {}

  gpu_sim::GetCommStatusResponse status() const;
  /// The same, for the host: once it has heard of the end of its calls, the next call starts a new batch.
  gpu_sim::GetCommStatusResponse report_outcome();
  proto::CommunicatorStatus whole_status() const;
  /// Who waits for whom: in the first operation in flight, at which this device stands, else with calls.
  proto::Verdict waits(device_id at) const;
  /// The cause of an operation that does not end: see `cause_in`. The evidence is what ranks do, in words.
  proto::Verdict cause() const;
  /// What ranks do and wait for, in words.
  std::string explain() const { return ringmaster::explain(view(), options_.id); }

  /// Answers when nothing is in flight, or after `limit`.
  void wait(caf::timespan limit, client_waiters::status_promise promise);
  /// Answers clients that wait, if nothing is in flight.
  void settle();
  /// A limit has passed, which may be of a client that waits.
  void expire(uint64_t limit_number);

private:
  communicator_view view() const;
  std::chrono::steady_clock::time_point now() const { return self_->clock().now(); }

  communicator_actor::pointer self_;
  const communicator_options& options_;
  const epoch_change& epochs_;
  const member_directory& members_;
  const member_watch& watch_;
  const call_desk& calls_;
  const shared_memory_run& shared_memory_;
  operation_outcomes& outcomes_;
  client_waiters& waiters_;
  call_limits& limits_;
  outbox& out_;
};

} // namespace ringmaster
