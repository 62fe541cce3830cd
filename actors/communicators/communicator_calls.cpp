// A COMMUNICATOR's ranks call for themselves: `call_desk` says what is to be done with their calls, and here it is
// done.
#include "actors/communicators/communicator.hpp"

#include "actors/calls/answers.hpp"
#include "actors/calls/request_limit.hpp"
#include "runtime/operations/rank_calls.hpp"

#include <caf/send.hpp>

#include <fmt/format.h>

namespace ringmaster {

void communicator_state::call(const proto::RankCall& x, rank_call_promise promise) {
  bool limited = x.timeout_ns() != 0;
  auto ticket = limit(limited ? request_limit(x.timeout_ns()) : options.operation_limit);
  open_calls_->emplace(ticket, std::move(promise));
  if (epochs_->ending()) {
    call_desk::answer_call answer{ticket, {}};
    set_error_in(answer.answer, epochs_->end_error());
    return carry_out(answer);
  }
  if (desk_->open_of(device_id{x.device_id()}) >= calls_open_max) {
    call_desk::answer_call answer{ticket, {}};
    set_error_in(answer.answer,
                 make_error(errc::too_many, fmt::format("{} calls of device 0x{:x} on communicator {} have not been "
                                                        "answered yet, its limit: call again when some have been",
                                                        calls_open_max, x.device_id(), options.id)));
    return carry_out(answer);
  }
  desk_->call(ticket, x, limited, now());
  serve_calls();
  keep_ticking();
}

void communicator_state::answer_if_it_dies() {
  self->attach_functor([calls = open_calls_, id = options.id.value](const caf::error& reason) {
    bool cluster_ends = reason == caf::exit_reason::user_shutdown; // the coordinator's reason, whom it follows
    for (auto& call : std::exchange(*calls, {}))
      call.second.deliver(
        make_error(cluster_ends ? errc::device_lost : errc::aborted,
                   fmt::format("communicator {} has {}: {}", id, cluster_ends ? "ended" : "failed", render(reason))));
  });
}

void communicator_state::serve_calls() {
  // What all ranks have called waits where too much is in flight; the end of an operation comes here again.
  auto must_wait = [this] { return !open_ || !can_begin() || operations().size() >= options.operations_max; };
  desk_->pause(must_wait());
  while (auto found = desk_->next()) {
    std::visit([this](auto& x) { carry_out(x); }, *found);
    desk_->pause(must_wait());
  }
}

void communicator_state::carry_out(call_desk::begin_operation& x) {
  auto sequence = enqueue(x.request, x.group, x.epoch);
  if (sequence)
    desk_->began(*sequence, x.parts);
  else
    desk_->parts_ended(x.parts, with_context(name_of(x.parts.front().what), sequence.error()));
}

void communicator_state::carry_out(call_desk::begin_split& x) {
  auto failed = [this, parts = x.parts](const caf::error& why) {
    desk_->parts_ended(parts, with_context("split", why));
    serve_calls();
  };
  if (!options.coordinator)
    return failed(make_error(errc::refused, "there is no coordinator"));
  epochs_->hold(); // its parts must find somebody, or go
  self->request(options.coordinator, options.operation_limit, std::move(x.request))
    .then(
      [this, parts = x.parts](const proto::CommDeriveResponse& made) {
        for (auto unwanted : desk_->split_made(made, parts)) {
          proto::CommDestroyRequest destroy;
          destroy.set_comm_id(unwanted.value);
          caf::anon_send(options.coordinator, std::move(destroy));
        }
        serve_calls();
        carry_out(epochs_->let_go());
      },
      [this, failed](const caf::error& problem) {
        failed(make_error(errc::timed_out,
                          "the coordinator did not answer, and may have made the parts: " + render(problem)));
        carry_out(epochs_->let_go());
      });
}

void communicator_state::carry_out(call_desk::refuse& x) {
  proto::Record record;
  record.mutable_calls_refused()->set_comm_id(options.id.value);
  record.mutable_calls_refused()->set_reason(render(x.reason));
  outbox_->journal(std::move(record));
}

void communicator_state::carry_out(call_desk::answer_call& x) {
  x.answer.set_epoch(epoch().value);
  limits_.remove(x.ticket);
  auto call = open_calls_->extract(x.ticket);
  outbox_->flush_records(); // whoever is answered may ask the journal
  call.mapped().deliver(std::move(x.answer));
}

void communicator_state::call_expired(uint64_t ticket) {
  auto last = last_ended_ == sequence_number{}
                ? std::string{"no operation has ended yet"}
                : fmt::format("it last finished {} #{}", name_of(last_kind_), last_ended_);
  auto x = desk_->expire(ticket, operations().latest().next(), last, now());
  serve_calls();
  end_late(x.late, x.waited);
}

void communicator_state::end_late(const std::vector<sequence_number>& sequences, const std::string& limit) {
  if (sequences.empty())
    return;
  auto doing = explain();
  change([&] { return epochs_->overdue(sequences, limit, doing); });
}

} // namespace ringmaster
