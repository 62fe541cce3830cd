#include "actors/communicators/rank_call_server.hpp"

#include "actors/calls/answers.hpp"
#include "actors/calls/request_limit.hpp"
#include "runtime/health/verdict_text.hpp"
#include "runtime/operations/rank_calls.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <fmt/format.h>
#include <utility>

namespace ringmaster {

rank_call_server::rank_call_server(communicator_actor::pointer self, const communicator_options& options,
                                   epoch_change& epochs, operation_runner& runner, call_limits& limits, outbox& out,
                                   std::function<void(epoch_change::decisions)> carry_out)
  : self_(self), options_(options), epochs_(epochs), runner_(runner), limits_(limits), out_(out),
    carry_out_(std::move(carry_out)), desk_(options.id) {
  desk_.look_elsewhere([&options, self](device_id x) {
    return options.waiting->elsewhere(x, options.id, self->clock().now());
  });
  desk_.explain_losses([&epochs](device_id x) {
    const auto* about = epochs.verdicts().about(x);
    return about == nullptr ? std::string{} : finding_of(*about);
  });
  self->attach_functor([calls = promises_, id = options.id](const caf::error& reason) {
    const bool cluster_ends = reason == caf::exit_reason::user_shutdown; // the coordinator's reason
    for (auto& call : std::exchange(*calls, {}))
      call.second.deliver(
        make_error(cluster_ends ? errc::device_lost : errc::aborted,
                   fmt::format("communicator {} has {}: {}", id, cluster_ends ? "ended" : "failed", render(reason))));
  });
}

void rank_call_server::call(const proto::RankCall& x, promise_type promise) {
  const auto now = self_->clock().now();
  const bool is_limited = x.timeout_ns() != 0;
  const auto ticket = limits_.add(now + (is_limited ? request_limit(x.timeout_ns()) : options_.operation_limit));
  const bool is_new = promises_->emplace(ticket, std::move(promise)).second;
  ensure(is_new, "a ticket is of one call");
  const auto refuse = [&](const caf::error& why) {
    call_desk::answer_call answer{ticket, {}};
    set_error_in(answer.answer, why);
    carry_out(answer);
  };
  if (epochs_.state().is_ending())
    return refuse(epochs_.end_error());
  if (desk_.open_of(device_id{x.device_id()}) >= calls_open_max)
    return refuse(make_error(errc::too_many, fmt::format("{} calls of device 0x{:x} on communicator {} have not been "
                                                         "answered yet, its limit: call again when some have been",
                                                         calls_open_max, x.device_id(), options_.id)));
  desk_.call(ticket, x, is_limited, now);
  serve();
}

void rank_call_server::open(epoch_number epoch, std::vector<device_id> devices) {
  desk_.set_ranks(epoch, std::move(devices));
  is_open_ = true;
  serve();
}

void rank_call_server::resume(epoch_number before, std::vector<device_id> devices,
                              const std::vector<recovered_communicator::rank_call>& calls) {
  desk_.set_ranks(before, std::move(devices));
  for (auto& x : calls)
    desk_.recover(x.device, x.call, x.sequences,
                  x.has_failed
                    ? make_error(errc::aborted, "an operation of this call had failed before the "
                                                "coordinator's process was restarted; the log has the reason")
                    : caf::error{});
}

void rank_call_server::operation_ended(const operation& op) {
  desk_.operation_ended(op.sequence, op.error);
  serve();
}

call_desk::expiry rank_call_server::expire(uint64_t ticket) {
  auto result = desk_.expire(ticket, epochs_.operations().latest().next(), runner_.outcomes().latest_text(),
                             self_->clock().now());
  serve();
  return result;
}

void rank_call_server::fail_all(const caf::error& error) {
  desk_.fail_all(error);
  serve();
}

void rank_call_server::serve() {
  // Where too much is in flight, calls that all ranks have made wait; the end of an operation calls this again.
  const auto must_wait = [this] {
    return !is_open_ || !epochs_.may_start() || epochs_.operations().size() >= options_.operations_max;
  };
  desk_.pause(must_wait());
  while (auto found = desk_.next()) {
    std::visit([this](auto& x) { carry_out(x); }, *found);
    desk_.pause(must_wait());
  }
}

void rank_call_server::carry_out(call_desk::begin_operation& x) {
  ensure(!x.parts.empty(), "an operation that ranks have called has parts");
  const auto sequence = runner_.enqueue(x.request, x.group, x.epoch, std::move(x.origin));
  if (sequence)
    desk_.began(*sequence, x.parts);
  else
    desk_.parts_ended(x.parts, with_context(name_of(x.parts.front().what), sequence.error()));
}

void rank_call_server::carry_out(call_desk::begin_split& x) {
  const auto failed = [this, parts = x.parts](const caf::error& why) {
    desk_.parts_ended(parts, with_context("split", why));
    serve();
  };
  if (!options_.coordinator)
    return failed(make_error(errc::refused, "there is no coordinator"));
  epochs_.hold(); // the coordinator asks this communicator about its parts
  self_->request(options_.coordinator, options_.operation_limit, std::move(x.request))
    .then(
      [this, parts = x.parts](const proto::CommDeriveResponse& made) {
        for (auto unwanted : desk_.split_made(made, parts)) {
          proto::CommDestroyRequest destroy;
          destroy.set_comm_id(unwanted.value);
          caf::anon_send(options_.coordinator, std::move(destroy));
        }
        serve();
        carry_out_(epochs_.let_go());
      },
      [this, failed](const caf::error& problem) {
        failed(make_error(errc::timed_out,
                          "the coordinator did not answer, and may have made the parts: " + render(problem)));
        carry_out_(epochs_.let_go());
      });
}

void rank_call_server::carry_out(call_desk::refuse& x) {
  proto::Record record;
  record.mutable_calls_refused()->set_comm_id(options_.id.value);
  record.mutable_calls_refused()->set_reason(render(x.reason));
  out_.journal(std::move(record));
}

void rank_call_server::carry_out(call_desk::answer_call& x) {
  x.answer.set_epoch(epochs_.state().epoch().value);
  limits_.remove(x.ticket);
  out_.flush_records(); // a rank that is answered may ask the journal
  auto call = promises_->extract(x.ticket);
  ensure(!call.empty(), "a call is answered once");
  call.mapped().deliver(std::move(x.answer));
}

} // namespace ringmaster
