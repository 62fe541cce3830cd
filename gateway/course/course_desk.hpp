#pragma once

#include "actors/calls/answers.hpp"
#include "gateway/course/desk_messages.hpp"
#include "gateway/dialects/communicator_table.hpp"
#include "gateway/dialects/device_table.hpp"
#include "gateway/dialects/listener_file.hpp"
#include "messages/interfaces.hpp"

#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <type_traits>

namespace ringmaster::gateway {

/// DESK: serves the calls of the clients of one listener. It is a client of the coordinator, which destroys its
/// communicators when it ends.
using course_desk_actor = caf::typed_actor<
  // Any thread: answer this.
  caf::reacts_to<call_pointer>,
  // GATEWAY: the listener listens.
  caf::reacts_to<device_ports>,
  // INTERNAL: destroy communicators that no client uses.
  caf::reacts_to<atom::tick>>;

struct course_desk_options {
  coordinator_actor coordinator;
  listener_options listener;
};

/// What the calls of a listener share.
class course_desk_state {
public:
  static constexpr const char* name = "course_desk";

  void start(course_desk_actor::pointer me, course_desk_options opts);
  void serve(const call_pointer& call);
  void destroy_idle();

  const dialect& form() const { return options.listener.form; }
  caf::actor_clock::time_point now() const { return self->clock().now(); }

  /// Asks the coordinator within the call's limit, and hands an answer without an error to `then`. Otherwise the call
  /// fails.
  template <class Response, class Then, class... Requests>
  void ask(const call_pointer& call, Then then, Requests&&... requests) {
    ask_or<Response>(
      call, std::move(then), [call](const caf::error& problem) { call->fail(problem); },
      std::forward<Requests>(requests)...);
  }
  /// The same; an error goes to `otherwise`.
  template <class Response, class Then, class Otherwise, class... Requests>
  void ask_or(const call_pointer& call, Then then, Otherwise otherwise, Requests&&... requests) {
    self->request(options.coordinator, call->left(now()), std::forward<Requests>(requests)...)
      .then(
        [then, otherwise](Response& x) {
          if (auto problem = refusal_in(x))
            otherwise(problem);
          else
            then(x);
        },
        [otherwise](const caf::error& problem) { otherwise(no_answer(problem)); });
  }

  /// Reads the state of the cluster's devices, then goes on.
  template <class Then>
  void refresh_devices(const call_pointer& call, Then then) {
    ask<proto::ClusterInfo>(
      call,
      [this, then](const proto::ClusterInfo& x) {
        devices->update(x);
        then(x);
      },
      proto::ClusterInfoRequest{});
  }

  /// Calls `then` with the result of `find`; if the device is unknown, once more with the present devices.
  template <class Find, class Then>
  void with_device(const call_pointer& call, Find find, Then then) {
    auto found = find();
    if (found)
      return then(*found);
    if (!devices->has_places() || code_of(found.error()) != errc::unknown_device)
      return call->fail(found.error());
    refresh_devices(call, [call, find, then](const proto::ClusterInfo&) {
      if (auto second = find())
        then(*second);
      else
        call->fail(second.error());
    });
  }

  /// The communicator that a call names, which counts as used. Null: the call has failed.
  course_communicator* communicator_for(const call_pointer& call, uint64_t id);
  /// The error of a call that the cluster does not answer.
  static caf::error no_answer(const caf::error& problem);
  /// Takes over what a status says of the members.
  void note_members(course_communicator& x, const gpu_sim::GetCommStatusResponse& status);

  course_desk_actor::pointer self = nullptr;
  course_desk_options options;
  std::optional<device_table> devices; ///< Set by `start`.
  communicator_table communicators;
  std::multiset<device_id> promised;       ///< Chosen for a communicator that is not made yet.
  std::map<uint64_t, device_id> receivers; ///< By the streams of the latest receives.

private:
  static bool is_unknown(errc code) { return code == errc::unknown_stream || code == errc::unknown_device; }
  /// The error of an answer; a failed operation or transfer is none.
  template <class Response>
  static caf::error refusal_in(const Response& x) {
    if constexpr (std::is_same_v<Response, gpu_sim::GetCommStatusResponse>)
      return x.epoch() == 0 ? error_in(x) : caf::error{};
    else if constexpr (std::is_same_v<Response, gpu_sim::GetStreamStatusResponse>)
      return is_unknown(code_of(error_in(x))) ? error_in(x) : caf::error{};
    else if constexpr (requires { x.error(); })
      return error_in(x);
    else
      return {};
  }
};

/// Reads a call's request. None: the call has failed.
template <class Request>
std::optional<Request> request_of(const call_pointer& call) {
  Request result;
  if (auto problem = call->parse(result)) {
    call->fail(problem);
    return std::nullopt;
  }
  return result;
}

course_desk_actor::behavior_type course_desk(course_desk_actor::stateful_pointer<course_desk_state> self,
                                             course_desk_options options);

} // namespace ringmaster::gateway
