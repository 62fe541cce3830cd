#include "actors/communicators/status_reporter.hpp"

#include "actors/calls/answers.hpp"
#include "runtime/epochs/wait_chain.hpp"

#include <fmt/format.h>

namespace ringmaster {

gpu_sim::GetCommStatusResponse status_reporter::status() const {
  gpu_sim::GetCommStatusResponse result;
  auto& operations = epochs_.operations();
  const bool in_flight = !operations.idle() || epochs_.state().is_changing();
  auto error = outcomes_.error();
  if (!error && epochs_.state().phase() == communicator_phase::aborted)
    error = epochs_.end_error();
  if (!error)
    error = missing_results(epochs_);
  result.set_status(in_flight ? gpu_sim::IN_PROGRESS : error ? gpu_sim::FAILED : gpu_sim::SUCCESS);
  if (!in_flight && error)
    set_error_in(result, error);
  result.set_asyncerror(epochs_.async_error());
  result.set_ended(epochs_.state().is_ending());
  result.set_operationsinflight(static_cast<uint32_t>(operations.size()));
  result.set_controlmessages(members_.relayed());
  const auto latest = epochs_.members().latest_epoch();
  result.set_epoch(latest.value);
  for (auto& x : *epochs_.members().in(latest))
    *result.add_devices() = x.metadata;
  for (auto& x : epochs_.verdicts().latest())
    *result.add_verdicts() = x;
  return result;
}

gpu_sim::GetCommStatusResponse status_reporter::report_outcome() {
  auto result = status();
  outcomes_.note_reported(result.status() == gpu_sim::IN_PROGRESS);
  return result;
}

communicator_view status_reporter::view() const {
  const auto has_come = [this](device_id device, sequence_number sequence) {
    return shared_memory_.has_come(device, sequence);
  };
  return {epochs_, watch_.liveness(), watch_.slow(), calls_, has_come, now(), out_.unix_ns()};
}

proto::CommunicatorStatus status_reporter::whole_status() const {
  auto result = status_of(view());
  const auto latest = status();
  result.set_comm_id(options_.id.value);
  result.set_policy(options_.policy);
  result.set_deterministic(options_.deterministic);
  result.set_status(latest.status());
  result.set_error(latest.error());
  *result.mutable_verdicts() = latest.verdicts();
  result.set_operations_ended(outcomes_.succeeded());
  result.set_operations_failed(outcomes_.failed());
  if (epochs_.operations().nothing_in_flight() && outcomes_.any_ended())
    result.set_quiet_ns(static_cast<uint64_t>((now() - outcomes_.ended_at()).count()) + 1);
  for (auto& x : watch_.received().rows(now())) {
    auto& route = *result.add_routes();
    route.set_name(x.route);
    route.set_bytes(x.bytes);
    route.set_bytes_per_s(x.bytes_per_s);
  }
  return result;
}

proto::Verdict status_reporter::waits(device_id at) const {
  const auto now = status_of(view());
  auto result = waits_in(now);
  if (result.sequence() == 0 && calls_.open() > 0)
    result = calls_.waits_in_calls(epochs_.operations().latest().next());
  else
    note_step(result, now, static_cast<uint32_t>(epochs_.members().rank_of(at)));
  result.set_time_ns(out_.unix_ns());
  return result;
}

proto::Verdict status_reporter::cause() const {
  auto result = cause_in(status_of(view()), epochs_.members().ranks(), options_.suspect.late_after);
  result.set_evidence(explain());
  result.set_time_ns(out_.unix_ns());
  return result;
}

void status_reporter::wait(caf::timespan limit, client_waiters::status_promise promise) {
  waiters_.add_idle_waiter({limits_.add(now() + limit), std::move(promise), limit});
  settle();
}

void status_reporter::settle() {
  if (!waiters_.any_waits_for_idle() || !epochs_.operations().idle() || epochs_.state().is_changing())
    return;
  out_.flush_records(); // a client that is answered may ask the journal
  for (auto& x : waiters_.take_idle_waiters()) {
    x.promise.deliver(report_outcome());
    limits_.remove(x.limit_number);
  }
}

void status_reporter::expire(uint64_t limit_number) {
  auto waiter = waiters_.take_expired(limit_number);
  if (!waiter)
    return;
  auto answer = status();
  const auto limit_s = std::chrono::duration<double>{waiter->limit}.count();
  set_error_in(answer, make_error(errc::timed_out, fmt::format("waited {:.1f} s: {}", limit_s, explain())));
  waiter->promise.deliver(std::move(answer));
}

} // namespace ringmaster
