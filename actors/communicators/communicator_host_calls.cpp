// A COMMUNICATOR's calls by the host, and the start of operations.
#include "actors/communicators/communicator.hpp"

#include "actors/calls/answers.hpp"
#include "actors/calls/request_limit.hpp"
#include "actors/communicators/journal_records.hpp"

#include <fmt/format.h>

namespace ringmaster {

namespace {

/// Answers when the plans that have gathered are sent: the caller's next call must come to the streams after them.
template <class Response>
caf::result<Response> after_the_plans(communicator_actor::pointer self, outbox& out, Response answer) {
  if (!out.flush_pending())
    return answer;
  auto promise = self->make_response_promise<Response>();
  out.when_flushed([promise, answer = std::move(answer)]() mutable { promise.deliver(std::move(answer)); });
  return promise;
}

} // namespace

caf::error communicator_state::group_start() {
  return epochs_->state().is_ending() ? epochs_->end_error() : operations().open_group();
}

caf::error communicator_state::group_end() {
  if (epochs_->state().is_ending())
    return epochs_->end_error();
  const bool first = operations().nothing_in_flight();
  if (auto problem = operations().close_group())
    return problem;
  const auto closed = operations().take_closed();
  if ((!closed.empty() || (first && epochs_->state().is_active())) && outcomes_.start_batch(!closed.empty()))
    epochs_->batch().start(!closed.empty()); // an empty group succeeds
  if (closed.empty()) {
    settle();
    return {};
  }
  if (first)
    watch_->note_progress(now());
  for (auto sequence : closed) {
    auto* op = operations().find(sequence);
    ensure(op != nullptr, "a group that was closed is in flight");
    limits_.add_operation(*op, now());
  }
  set_timer();
  if (epochs_->state().is_active())
    carry_out(epochs_->group_closed());
  run_waiting();
  keep_ticking();
  return {};
}

proto::CollectiveResponse communicator_state::start_call(proto::CollectiveRequest& request) {
  const bool may_wait = request.answer_may_wait();
  outbox_->gather_records(true);
  const auto sequence = enqueue(request, 0, {});
  outbox_->gather_records(false);
  auto answer = verdict<proto::CollectiveResponse>(sequence ? caf::error{} : sequence.error());
  answer.set_sequence(sequence ? sequence->value : 0);
  if (!may_wait && outbox_->may_wait())
    flush(); // it is not one of the operations that have gathered, and does not wait with them
  return answer;
}

caf::result<proto::CollectiveResponse> communicator_state::collective(proto::CollectiveRequest& request) {
  return after_the_plans(self, *outbox_, start_call(request));
}

caf::result<proto::CollectiveResponses> communicator_state::collectives(proto::CollectiveRequests& requests) {
  proto::CollectiveResponses answers;
  for (auto& request : *requests.mutable_calls())
    *answers.add_answers() = start_call(request);
  return after_the_plans(self, *outbox_, std::move(answers));
}

void communicator_state::wait(caf::timespan limit, client_waiters::status_promise promise) {
  const auto number = limits_.add(now() + limit);
  set_timer();
  waiters_.add_idle_waiter({number, std::move(promise), limit});
  settle();
}

void communicator_state::destroy(const std::string& reason, client_waiters::destroy_promise promise) {
  waiters_.add_destroy(std::move(promise));
  change([&](auto& epochs) { return epochs.destroy(reason); });
}

caf::expected<operation> communicator_state::operation_for(const proto::CollectiveRequest& request,
                                                           epoch_number in_epoch) {
  const bool shares_memory = options.share_memory && members_->all_in_reach(epochs_->ranks());
  return planner_->operation_for(request, epochs_->members(), in_epoch, shares_memory);
}

caf::expected<sequence_number> communicator_state::enqueue(proto::CollectiveRequest& request, uint64_t rank_group,
                                                           epoch_number in_epoch) {
  if (epochs_->state().is_ending())
    return epochs_->end_error();
  if (operations().size() >= options.operations_max)
    return make_error(errc::too_many, fmt::format("communicator {} has {} operations in flight, its limit",
                                                  options.id.value, options.operations_max));
  auto made = operation_for(request, in_epoch);
  if (!made && epochs_->async_error().empty())
    return std::move(made.error());
  if (!made) // the caller may not know that ranks have changed
    return make_error(
      code_of(made.error()),
      fmt::format("{}; in epoch {} the communicator has {} ranks, see GetCommStatus for their devices: {}",
                  render(made.error()), epochs_->epoch(), epochs_->ranks().size(), epochs_->async_error()));
  const bool waits_for_group_end = operations().collects(rank_group);
  const bool first = operations().nothing_in_flight();
  made->limit = request_limit(request.timeout_ns());
  made->walks_alone = request.walks_alone();
  made->called_ns = outbox_->unix_ns();
  made->may_wait = request.answer_may_wait()
                   && request.timeout_ns() == 0; // its limit would also end what it waits with
  auto& op = operations().add(std::move(*made), rank_group);
  if (outbox_->journals()) {
    proto::Record record;
    auto& enqueued = *record.mutable_operation_enqueued();
    enqueued.set_sequence(op.sequence.value);
    *enqueued.mutable_request() = std::move(request);
    enqueued.set_bytes(op.bytes);
    outbox_->journal(std::move(record));
  }
  if (waits_for_group_end)
    return op.sequence;
  const bool by_host = !op.was_called_by_ranks();
  if ((first || by_host) && outcomes_.start_batch(by_host))
    epochs_->batch().start(by_host);
  if (first)
    watch_->note_progress(now());
  limits_.add_operation(op, now());
  set_timer();
  if (epochs_->may_start())
    run(op);
  outbox_->flush_later();
  keep_ticking();
  return op.sequence;
}

void communicator_state::run(operation& op) {
  ensure(epochs_->state().is_active() && op.state == operation::phase::running, "an attempt starts in an active epoch");
  const bool shares_memory = options.share_memory && members_->all_in_reach(epochs_->ranks());
  auto plan = planner_->start(op, epochs_->epoch(), static_cast<uint32_t>(epochs_->ranks().size()), shares_memory,
                              outbox_->unix_ns());
  const auto* latest = outbox_->flush_pending() ? operations().find(outbox_->latest()) : nullptr;
  op.may_wait = op.may_wait && may_wait_for_company(op, latest, planner_->may_fuse(epochs_->ranks()));
  outbox_->add(std::move(plan), op);
  outbox_->journal(record_of_start(op, options.id));
}

void communicator_state::run_waiting() {
  if (!epochs_->may_start())
    return;
  for (auto& op : operations().in_flight())
    if (op.attempts == 0)
      run(op);
  flush();
}

} // namespace ringmaster
