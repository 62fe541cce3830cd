#include "client/rank_caller.hpp"

#include "actors/calls/answers.hpp"
#include "actors/calls/request_limit.hpp"
#include "client/rank_mailbox.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace ringmaster {

namespace {

/// How long a call waits for its answer. The communicator applies the call's limit, and needs some time to stop the
/// operation then. Without a limit the communicator fails operations that make no progress, and its end and the
/// coordinator's are noticed. CAF keeps a request's limit until it expires, also after the answer: of a long one there
/// would be millions.
caf::timespan answer_limit(const proto::RankCall& x) { // 0: none
  constexpr caf::timespan to_stop = std::chrono::minutes{2};
  return x.timeout_ns() == 0 ? caf::timespan{0} : request_limit(x.timeout_ns()) + to_stop;
}

caf::error no_answer(const caf::error& problem, caf::timespan limit) {
  if (problem == caf::sec::request_timeout)
    return make_error(errc::timed_out, fmt::format("the communicator did not answer within {:.0f} s",
                                                   std::chrono::duration<double>{limit}.count()));
  if (problem == errc::too_many || problem == errc::permission_denied) // the coordinator runs, and refused the call
    return problem;
  auto code = code_of(problem) == errc::ok ? errc::device_lost : code_of(problem); // the communicator's reason has one
  return make_error(code, "the communicator is gone: " + render(problem));
}

void send_calls(caf::stateful_actor<rank_caller_state>* self, const coordinator_actor& coordinator,
                const std::shared_ptr<rank_outbox>& box);

/// The communicator has ended before it received the call: asks the coordinator why.
void ask_how_it_ended(caf::stateful_actor<rank_caller_state>* self, const coordinator_actor& coordinator,
                      const std::shared_ptr<rank_outbox>& box, communicator_id communicator, uint64_t number) {
  const caf::timespan limit = std::chrono::seconds{30};
  gpu_sim::GetCommStatusRequest request;
  request.set_commid(communicator.value);
  request.set_readonly(true);
  auto fail = [self, coordinator, box, number](const caf::error& why) {
    if (auto calls = self->state.under_way.extract(number))
      finish(*calls.mapped(), {}, why);
    send_calls(self, coordinator, box);
  };
  self->request(coordinator, limit, std::move(request))
    .then(
      [fail](const gpu_sim::GetCommStatusResponse& x) {
        fail(x.error().empty() ? make_error(errc::device_lost, "the communicator is gone") : error_in(x));
      },
      [fail, limit](const caf::error& problem) { fail(no_answer(problem, limit)); });
}

/// The communicator applies the limit from the arrival of the call. Subtracts the time since the call was made. A call
/// without time left fails there, which keeps it in the order of calls.
void shorten_limit(rank_outbox::entry& x, caf::actor_clock::time_point now) {
  const auto limit = x.call.timeout_ns();
  if (limit == 0)
    return;
  const auto passed = std::chrono::nanoseconds{now - x.called_at}.count();
  x.call.set_timeout_ns(limit - std::min(limit - 1, static_cast<uint64_t>(std::max<int64_t>(passed, 0))));
  ensure(x.call.timeout_ns() != 0 && x.call.timeout_ns() <= limit, "a call with a limit keeps one, which only shrinks");
}

/// Sends waiting calls while fewer than `calls_under_way_max` are pending.
void send_calls(caf::stateful_actor<rank_caller_state>* self, const coordinator_actor& coordinator,
                const std::shared_ptr<rank_outbox>& box) {
  auto& state = self->state;
  if (state.gone) {
    for (auto& entry : box->take(SIZE_MAX))
      finish(*entry.calls, {}, state.gone);
    return;
  }
  ensure(state.under_way.size() <= rank_caller_state::calls_under_way_max, "the limit of pending calls holds");
  auto room = rank_caller_state::calls_under_way_max - state.under_way.size();
  for (auto& entry : box->take(room)) {
    auto number = ++state.calls;
    const bool is_new = state.under_way.emplace(number, entry.calls).second;
    ensure(is_new, "each call has its own number");
    shorten_limit(entry, self->clock().now());
    auto limit = answer_limit(entry.call);
    communicator_id communicator{entry.call.comm_id()};
    auto within = limit.count() == 0 ? caf::duration{caf::infinite} : caf::duration{limit};
    self->request(coordinator, within, std::move(entry.call))
      .then(
        [self, coordinator, box, number](proto::RankCallResponse& x) {
          auto calls = self->state.under_way.extract(number);
          auto problem = x.success() ? caf::error{} : error_from_wire(x.code(), x.error());
          if (calls)
            finish(*calls.mapped(), std::move(x), std::move(problem));
          send_calls(self, coordinator, box);
        },
        [self, coordinator, box, communicator, number, limit](const caf::error& problem) {
          if (problem == caf::sec::request_receiver_down && !self->state.gone)
            return ask_how_it_ended(self, coordinator, box, communicator, number);
          if (auto calls = self->state.under_way.extract(number))
            finish(*calls.mapped(), {}, no_answer(problem, limit));
          send_calls(self, coordinator, box);
        });
  }
}

} // namespace

caf::behavior rank_caller(caf::stateful_actor<rank_caller_state>* self, coordinator_actor coordinator,
                          std::shared_ptr<rank_outbox> box) {
  ensure(box != nullptr && static_cast<bool>(coordinator), "a rank's calls have an outbox and a coordinator");
  self->monitor(coordinator);
  self->set_down_handler([self, coordinator, box](const caf::down_msg& x) {
    self->state.gone = make_error(errc::device_lost, "the coordinator is gone: " + render(x.reason));
    self->state.fail_all(self->state.gone);
    send_calls(self, coordinator, box);
  });
  self->set_exit_handler([self, coordinator, box](const caf::exit_msg& x) {
    self->state.gone = make_error(errc::aborted, "the rank's handle is gone");
    self->state.fail_all(self->state.gone);
    send_calls(self, coordinator, box);
    self->quit(x.reason);
  });
  auto make_calls = [self, coordinator, box](atom::flush) { send_calls(self, coordinator, box); };
  auto look_after = [self, coordinator, box](atom::tick) {
    auto meeting = box->looked_after();
    if (!meeting)
      return;
    if (auto done = meeting->report(false))
      self->send(coordinator, std::move(*done));
    if (meeting->tick())
      self->delayed_send(self, rank_mailbox::look_every, atom::tick_v);
  };
  return {make_calls, look_after};
}

} // namespace ringmaster
