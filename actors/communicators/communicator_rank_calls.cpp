// A COMMUNICATOR's calls by the ranks themselves: `call_desk` decides, and its decisions are carried out here.
#include "actors/communicators/communicator_actions.hpp"

#include "actors/calls/answers.hpp"
#include "actors/calls/request_limit.hpp"
#include "runtime/operations/rank_calls.hpp"

#include <caf/send.hpp>

#include <fmt/format.h>

namespace ringmaster {

void communicator_state::call(const proto::RankCall& x, rank_call_promises::promise_type promise) {
  const bool is_limited = x.timeout_ns() != 0;
  const auto ticket = limits_.add(now() + (is_limited ? request_limit(x.timeout_ns()) : options.operation_limit));
  set_timer();
  rank_calls_.add(ticket, std::move(promise));
  const auto refuse = [&](const caf::error& why) {
    call_desk::answer_call answer{ticket, {}};
    set_error_in(answer.answer, why);
    call_actions{*this}(answer);
  };
  if (epochs_->state().is_ending())
    return refuse(epochs_->end_error());
  if (desk_->open_of(device_id{x.device_id()}) >= calls_open_max)
    return refuse(make_error(errc::too_many, fmt::format("{} calls of device 0x{:x} on communicator {} have not been "
                                                         "answered yet, its limit: call again when some have been",
                                                         calls_open_max, x.device_id(), options.id)));
  desk_->call(ticket, x, is_limited, now());
  serve_calls();
  keep_ticking();
}

void communicator_state::serve_calls() {
  // Where too much is in flight, calls that all ranks have made wait; the end of an operation calls this again.
  const auto must_wait = [this] {
    return !epoch_is_announced_ || !epochs_->may_start() || operations().size() >= options.operations_max;
  };
  desk_->pause(must_wait());
  while (auto found = desk_->next()) {
    std::visit(call_actions{*this}, *found);
    desk_->pause(must_wait());
  }
}

void call_actions::operator()(call_desk::begin_operation& x) const {
  ensure(!x.parts.empty(), "an operation that ranks have called has parts");
  const auto sequence = on.enqueue(x.request, x.group, x.epoch);
  if (sequence)
    on.desk_->began(*sequence, x.parts);
  else
    on.desk_->parts_ended(x.parts, with_context(name_of(x.parts.front().what), sequence.error()));
}

void call_actions::operator()(call_desk::begin_split& x) const {
  auto& state = on; // outlives this object
  const auto failed = [&state, parts = x.parts](const caf::error& why) {
    state.desk_->parts_ended(parts, with_context("split", why));
    state.serve_calls();
  };
  if (!state.options.coordinator)
    return failed(make_error(errc::refused, "there is no coordinator"));
  state.epochs_->hold(); // the coordinator asks this communicator about its parts
  state.self->request(state.options.coordinator, state.options.operation_limit, std::move(x.request))
    .then(
      [&state, parts = x.parts](const proto::CommDeriveResponse& made) {
        for (auto unwanted : state.desk_->split_made(made, parts)) {
          proto::CommDestroyRequest destroy;
          destroy.set_comm_id(unwanted.value);
          caf::anon_send(state.options.coordinator, std::move(destroy));
        }
        state.serve_calls();
        state.carry_out(state.epochs_->let_go());
      },
      [&state, failed](const caf::error& problem) {
        failed(make_error(errc::timed_out,
                          "the coordinator did not answer, and may have made the parts: " + render(problem)));
        state.carry_out(state.epochs_->let_go());
      });
}

void call_actions::operator()(call_desk::refuse& x) const {
  proto::Record record;
  record.mutable_calls_refused()->set_comm_id(on.options.id.value);
  record.mutable_calls_refused()->set_reason(render(x.reason));
  on.outbox_->journal(std::move(record));
}

void call_actions::operator()(call_desk::answer_call& x) const {
  x.answer.set_epoch(on.epochs_->epoch().value);
  on.limits_.remove(x.ticket);
  on.outbox_->flush_records(); // a rank that is answered may ask the journal
  on.rank_calls_.answer(x.ticket, std::move(x.answer));
}

} // namespace ringmaster
