// A COMMUNICATOR's status.
#include "actors/communicators/communicator.hpp"

#include "actors/calls/answers.hpp"

namespace ringmaster {

gpu_sim::GetCommStatusResponse communicator_state::status() const {
  gpu_sim::GetCommStatusResponse result;
  const bool in_flight = !operations().idle() || epochs_->state().is_changing();
  auto error = outcomes_.error();
  if (!error && epochs_->state().phase() == communicator_phase::aborted)
    error = epochs_->end_error();
  if (!error)
    error = missing_results(*epochs_);
  result.set_status(in_flight ? gpu_sim::IN_PROGRESS : error ? gpu_sim::FAILED : gpu_sim::SUCCESS);
  if (!in_flight && error)
    set_error_in(result, error);
  result.set_asyncerror(epochs_->async_error());
  result.set_ended(epochs_->state().is_ending());
  result.set_operationsinflight(static_cast<uint32_t>(operations().size()));
  result.set_controlmessages(control_messages_);
  const auto latest = epochs_->members().latest_epoch();
  result.set_epoch(latest.value);
  for (auto& x : *epochs_->members().in(latest))
    *result.add_devices() = x.metadata;
  return result;
}

gpu_sim::GetCommStatusResponse communicator_state::report_outcome() {
  auto result = status();
  outcomes_.note_reported(result.status() == gpu_sim::IN_PROGRESS);
  return result;
}

communicator_view communicator_state::view() const {
  const auto has_come = [this](device_id device, sequence_number sequence) {
    return shared_memory_->has_come(device, sequence);
  };
  return {*epochs_, watch_->liveness(), *desk_, has_come, now(), outbox_->unix_ns()};
}

proto::CommunicatorStatus communicator_state::whole_status() const {
  auto result = status_of(view());
  const auto latest = status();
  result.set_comm_id(options.id.value);
  result.set_policy(options.policy);
  result.set_deterministic(options.deterministic);
  result.set_status(latest.status());
  result.set_error(latest.error());
  result.set_operations_ended(outcomes_.succeeded());
  result.set_operations_failed(outcomes_.failed());
  if (operations().nothing_in_flight() && outcomes_.any_ended())
    result.set_quiet_ns(static_cast<uint64_t>((now() - outcomes_.ended_at()).count()) + 1);
  for (auto& x : watch_->received().rows(now())) {
    auto& route = *result.add_routes();
    route.set_name(x.route);
    route.set_bytes(x.bytes);
    route.set_bytes_per_s(x.bytes_per_s);
  }
  return result;
}

} // namespace ringmaster
