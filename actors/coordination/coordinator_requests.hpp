#pragma once

#include "actors/calls/answers.hpp"
#include "actors/coordination/coordinator.hpp"

namespace ringmaster {

// How the COORDINATOR asks other actors on behalf of its clients. Every request has a limit, and the client gets either
// the answer or an error that says what was awaited, also if the receiver ends first.

/// Why there is no answer. Errors: timed_out; `gone`, if the receiver has ended.
caf::error no_answer(const std::string& who, const caf::error& problem, caf::timespan limit, errc gone);

/// Whether only the end of the receiver is known. Its down message follows, since it is monitored, with the reason, and
/// then all that wait for it are answered. The journal is not monitored.
template <class Id>
bool reason_follows(Id, const caf::error& problem) {
  return problem == caf::sec::request_receiver_down;
}
inline bool reason_follows(the_journal, const caf::error&) {
  return false;
}

/// The receiver's name in a sentence.
inline std::string text_of(const coordinator_state& state, device_id id) {
  return state.devices.text_of(id);
}
inline std::string text_of(const coordinator_state&, communicator_id id) {
  return fmt::format("communicator {}", id);
}
inline std::string text_of(const coordinator_state&, the_journal) {
  return "the journal";
}

/// Asks `whom`, which is `id` in `calls`. `got(Response&...)` or `failed(const caf::error&)` is called, once. All
/// limits share a timer: one for each would wake a thread, and most calls end at once. `gone`: the error if it has
/// ended.
template <class... Response, class Id, class Actor, class Got, class Failed, class... Request>
void ask_then(coordinator_state& state, pending_calls<Id, request_peer>& calls, Id id, const Actor& whom, errc gone,
              caf::timespan limit, Got got, Failed failed, const Request&... request) {
  auto late = [&state, id, failed, limit, gone](const caf::error& problem) mutable {
    failed(problem == caf::sec::request_timeout ? no_answer(text_of(state, id), problem, limit, gone) : problem);
  };
  const auto& peer = state.calling_peer;
  if (!(peer == request_peer{}) && calls.count_of(peer) >= coordinator_state::passed_on_max)
    return failed(make_error(errc::too_many,
                             fmt::format("{} calls of this client have not been answered yet, its limit: "
                                         "call again when some have been",
                                         coordinator_state::passed_on_max)));
  auto call = calls.begun(id, state.self->clock().now() + limit, late, peer);
  state.keep_time(calls);
  auto ask = [&](auto timeout) {
    state.self->request(whom, timeout, request...)
      .then(
        [&calls, call, got](Response&... x) mutable {
          if (calls.ended(call))
            got(x...);
        },
        [&state, &calls, id, call, failed, limit, gone](const caf::error& problem) mutable {
          if (!reason_follows(id, problem) && calls.ended(call))
            failed(no_answer(text_of(state, id), problem, limit, gone));
        });
  };
  if (whom.node() == state.self->node())
    ask(caf::infinite);
  else
    ask(limit); // where its connection is cut CAF would keep the request
}

/// Asks a device.
template <class... Response, class Got, class Failed, class... Request>
void ask_device_then(coordinator_state& state, device_id id, caf::timespan limit, Got got, Failed failed,
                     const Request&... request) {
  auto device = state.devices.known(id);
  if (!device)
    return failed(device.error());
  ask_then<Response...>(state, state.calls.devices, id, caf::actor_cast<device_actor>((*device)->handle.device),
                        errc::device_lost, limit, got, failed, request...);
}

/// Asks a communicator.
template <class Response, class Request, class Got, class Failed>
void ask_communicator_then(coordinator_state& state, communicator_id id, const Request& request, caf::timespan limit,
                           Got got, Failed failed) {
  auto communicator = state.communicator_of(id);
  if (!communicator)
    return failed(communicator.error());
  ask_then<Response>(state, state.calls.communicators, id, *communicator, errc::unknown_communicator, limit, got,
                     failed, request);
}

/// Answers with the response. `look` sees it first.
template <class Response, class Look>
auto deliver_to(caf::typed_response_promise<Response> promise, Look look) {
  return [promise, look](Response& x) mutable {
    look(x);
    promise.deliver(std::move(x));
  };
}

/// Answers with the refusal of an error.
template <class Response>
auto refuse_by(caf::typed_response_promise<Response> promise) {
  return [promise](const caf::error& problem) mutable { promise.deliver(refusal<Response>(problem)); };
}

/// For answers that are only passed on.
constexpr auto pass_on = [](const auto&) {};

/// Answers with the refusal of an error; where a device has not answered in time, with the silence of its node.
template <class Response>
auto refuse_for(coordinator_state& state, device_id id, caf::typed_response_promise<Response> promise) {
  return [&state, id, promise](const caf::error& problem) mutable {
    auto device = state.devices.find(id);
    if (device == nullptr || code_of(problem) != errc::timed_out)
      return refuse_by(promise)(problem);
    state.silences.explain(device->node, problem, refuse_by(promise));
  };
}

/// Asks a device for a client. `look` sees the answer first.
template <class Response, class Request, class Look = decltype(pass_on)>
caf::result<Response> ask_device(coordinator_state& state, device_id id, const Request& request, caf::timespan limit,
                                 Look look = pass_on) {
  auto promise = state.self->make_response_promise<Response>();
  ask_device_then<Response>(state, id, limit, deliver_to(promise, look), refuse_for(state, id, promise), request);
  return promise;
}

/// Asks a communicator for a client.
template <class Response, class Request, class Look = decltype(pass_on)>
caf::result<Response> ask_communicator(coordinator_state& state, communicator_id id, const Request& request,
                                       caf::timespan limit, Look look = pass_on) {
  auto promise = state.self->make_response_promise<Response>();
  ask_communicator_then<Response>(state, id, request, limit, deliver_to(promise, look), refuse_by(promise));
  return promise;
}

// Requests that are not only passed on (coordinator_requests.cpp).
caf::result<proto::AllocateResponse> allocate(coordinator_state& state, device_id id, proto::AllocateRequest x);
caf::result<proto::FreeResponse> free(coordinator_state& state, device_id id, const proto::FreeRequest& x);
caf::result<gpu_sim::MemcpyResponse, byte_block> copy_memory(coordinator_state& state, gpu_sim::MemcpyRequest x,
                                                             byte_block block);
/// The course's form, with the bytes within the messages.
caf::result<gpu_sim::MemcpyResponse> copy_memory_within(coordinator_state& state, const gpu_sim::MemcpyRequest& x);
/// The course's all-reduce as the general collective.
proto::CollectiveRequest general(const gpu_sim::AllReduceRingRequest& x);
/// Enqueues, and notes what the host could give back to a spare.
caf::result<proto::CollectiveResponse> collective(coordinator_state& state, proto::CollectiveRequest& x);
/// The same for several, which must be of one communicator.
caf::result<proto::CollectiveResponses> collectives(coordinator_state& state, proto::CollectiveRequests& x);
caf::result<gpu_sim::AllReduceRingResponse> all_reduce_ring(coordinator_state& state,
                                                            const gpu_sim::AllReduceRingRequest& x);
caf::result<proto::RankCallResponse> rank_call(coordinator_state& state, proto::RankCall& x);

} // namespace ringmaster
