#include "actors/communicators/operation_runner.hpp"

#include "actors/calls/answers.hpp"
#include "actors/calls/request_limit.hpp"
#include "actors/communicators/journal_records.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

namespace {

/// Of a shared-memory operation: the larger of all inputs and all outputs.
uint64_t moved_bytes(const operation& op) {
  uint64_t in = 0, out = 0;
  for (auto& slot : op.slots) {
    in += slot.input_bytes;
    out += slot.output_bytes;
  }
  return std::max(in, out);
}

} // namespace

// -- calls ----------------------------------------------------------------------------

caf::error operation_runner::open_group() {
  return epochs_.state().is_ending() ? epochs_.end_error() : epochs_.operations().open_group();
}

caf::expected<bool> operation_runner::close_group() {
  if (epochs_.state().is_ending())
    return epochs_.end_error();
  auto& operations = epochs_.operations();
  const bool first = operations.nothing_in_flight();
  if (auto problem = operations.close_group())
    return problem;
  const auto closed = operations.take_closed();
  const bool has_calls = !closed.empty();
  if ((has_calls || (first && epochs_.state().is_active())) && outcomes_.start_batch(has_calls))
    operations.batch().start(has_calls); // an empty group succeeds
  if (has_calls && first)
    watch_.note_progress(now());
  for (auto sequence : closed) {
    auto* op = operations.find(sequence);
    ensure(op != nullptr, "a group that was closed is in flight");
    limits_.add_operation(*op, now());
  }
  return has_calls;
}

caf::expected<operation> operation_runner::operation_for(const proto::CollectiveRequest& request,
                                                         epoch_number in_epoch) {
  return planner_.operation_for(request, epochs_.members(), in_epoch, shares_memory());
}

void operation_runner::resume(const recovered_communicator& before) {
  known_calls_ = {before.host_calls.begin(), before.host_calls.end()};
  auto& operations = epochs_.operations();
  bool of_host = false;
  for (auto& op : operations.in_flight()) {
    limits_.add_operation(op, now());
    of_host = of_host || !op.was_called_by_ranks();
  }
  caf::error failed;
  if (before.failed_in_batch != sequence_number{})
    failed = make_error(errc::aborted,
                        fmt::format("operation #{} has failed, and the coordinator's process ended before "
                                    "all had heard why: see `ringmaster log --explain {}:{}`",
                                    before.failed_in_batch, options_.id, before.failed_in_batch));
  outcomes_.restore(before.batch, of_host || failed, failed);
  if (operations.latest() != sequence_number{})
    operations.batch().restore(!known_calls_.empty(), before.without_results);
}

void operation_runner::note_acknowledged(sequence_number sequence) {
  auto& operations = epochs_.operations();
  const auto known = operations.latest();
  if (sequence <= known)
    return;
  const auto first = known.next();
  const auto which = first == sequence ? fmt::format("operation #{} was called and has", sequence)
                                       : fmt::format("operations #{} to #{} were called and have", first, sequence);
  outcomes_.note_lost(make_error(errc::aborted, which
                                                  + " reached no rank before the coordinator's process ended: call "
                                                    "again"),
                      sequence.value - known.value);
  operations.skip_to(sequence);
}

caf::expected<sequence_number> operation_runner::enqueue(proto::CollectiveRequest& request, uint64_t rank_group,
                                                         epoch_number in_epoch, proto::CallOrigin origin) {
  auto& operations = epochs_.operations();
  if (epochs_.state().is_ending())
    return epochs_.end_error();
  if (operations.size() >= options_.operations_max)
    return make_error(errc::too_many, fmt::format("communicator {} has {} operations in flight, its limit",
                                                  options_.id.value, options_.operations_max));
  auto made = operation_for(request, in_epoch);
  if (!made && epochs_.async_error().empty())
    return std::move(made.error());
  if (!made) // the caller may not know that ranks have changed
    return make_error(
      code_of(made.error()),
      fmt::format("{}; in epoch {} the communicator has {} ranks, see GetCommStatus for their devices: {}",
                  render(made.error()), epochs_.state().epoch(), epochs_.members().ranks().size(),
                  epochs_.async_error()));
  const bool waits_for_group_end = operations.collects(rank_group);
  const bool first = operations.nothing_in_flight();
  made->limit = request_limit(request.timeout_ns());
  made->walks_alone = request.walks_alone();
  made->called_ns = out_.unix_ns();
  made->may_wait = request.answer_may_wait()
                   && request.timeout_ns() == 0; // its limit would also end what it waits with
  if (options_.recoverable) {
    if (request.has_call())
      *origin.mutable_host() = request.call();
    origin.set_called_ns(made->called_ns);
    origin.set_limit_ns(request.timeout_ns());
    *made->plan.mutable_origin() = std::move(origin);
  }
  auto& op = operations.add(std::move(*made), rank_group);
  if (out_.journals()) {
    proto::Record record;
    auto& enqueued = *record.mutable_operation_enqueued();
    enqueued.set_sequence(op.sequence.value);
    *enqueued.mutable_request() = std::move(request);
    enqueued.set_bytes(op.bytes);
    enqueued.set_by_ranks(op.was_called_by_ranks());
    out_.journal(std::move(record));
  }
  if (waits_for_group_end)
    return op.sequence;
  const bool by_host = !op.was_called_by_ranks();
  if ((first || by_host) && outcomes_.start_batch(by_host))
    operations.batch().start(by_host);
  if (first)
    watch_.note_progress(now());
  limits_.add_operation(op, now());
  if (epochs_.may_start())
    run(op);
  out_.flush_later();
  return op.sequence;
}

proto::CollectiveResponse operation_runner::enqueue_of_host(proto::CollectiveRequest& request) {
  if (request.has_call() && !known_calls_.empty())
    if (auto known = known_calls_.find({request.call().caller(), request.call().number()});
        known != known_calls_.end()) { // the caller has not had the answer
      auto answer = verdict<proto::CollectiveResponse>(caf::none);
      answer.set_sequence(known->second.value);
      return answer;
    }
  const bool may_wait = request.answer_may_wait();
  out_.gather_records(true);
  const auto sequence = enqueue(request, 0, {});
  out_.gather_records(false);
  auto answer = verdict<proto::CollectiveResponse>(sequence ? caf::error{} : sequence.error());
  answer.set_sequence(sequence ? sequence->value : 0);
  if (!may_wait && out_.may_wait())
    flush(); // it is not one of the operations that have gathered, and does not wait with them
  return answer;
}

// -- attempts -------------------------------------------------------------------------

void operation_runner::run(operation& op) {
  ensure(epochs_.state().is_active() && op.state == operation::phase::running, "an attempt starts in an active epoch");
  if (options_.recoverable && !op.was_called_by_ranks() && op.plan.origin().batch() == 0)
    op.plan.mutable_origin()->set_batch(outcomes_.batch());
  auto& ranks = epochs_.members().ranks();
  auto plan = planner_.start(op, epochs_.state().epoch(), static_cast<uint32_t>(ranks.size()), shares_memory(),
                             out_.unix_ns());
  const auto* latest = out_.flush_pending() ? epochs_.operations().find(out_.latest()) : nullptr;
  op.may_wait = op.may_wait && may_wait_for_company(op, latest, planner_.may_fuse(ranks));
  out_.add(std::move(plan), op);
  out_.journal(record_of_start(op, options_.id));
}

void operation_runner::run_waiting() {
  if (!epochs_.may_start())
    return;
  for (auto& op : epochs_.operations().in_flight())
    if (op.attempts == 0)
      run(op);
  flush();
}

void operation_runner::run_in_new_epoch() {
  planner_.set_hosts(members_.hosts());
  for (auto& op : epochs_.operations().in_flight())
    if (op.state == operation::phase::running)
      run(op);
  flush();
}

void operation_runner::flush() {
  auto& ranks = epochs_.members().ranks();
  members_.note_relayed(out_.flush(members_.handles_of(ranks), members_.streams_of(ids_of(ranks)), epochs_.operations(),
                                   planner_.may_fuse(ranks)));
}

void operation_runner::flush_gathered() {
  if (!out_.flush_pending())
    return out_.wait(); // the plans went out with something else
  auto& queue = epochs_.operations().in_flight();
  const bool others_run = std::any_of(queue.begin(), queue.end(), [&](auto& op) {
    return op.state == operation::phase::running && op.sequence < out_.first();
  });
  if (others_run && out_.may_wait())
    out_.wait();
  else
    flush();
}

// -- ends -----------------------------------------------------------------------------

void operation_runner::note_ended(const operation& op) {
  out_.journal(record_of_end(op, options_.id, out_.unix_ns()));
  if (op.joint && !op.error)
    watch_.note_moved("joint", moved_bytes(op), now());
  outcomes_.note_ended(op, epochs_.operations().batch().contains(op), now());
  limits_.remove_operation(op);
}

} // namespace ringmaster
