#include "gateway/course/course_desk.hpp"

#include "gateway/course/all_reduce_calls.hpp"
#include "gateway/course/communicator_calls.hpp"
#include "gateway/course/copy_calls.hpp"
#include "gateway/course/device_calls.hpp"
#include "gateway/course/method_names.hpp"
#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <string_view>

namespace ringmaster::gateway {

namespace {

using handler = void (*)(course_desk_state&, const call_pointer&);

const std::map<std::string_view, handler>& handlers() {
  static const std::map<std::string_view, handler> result{
    {methods::comm_init, comm_init},
    {methods::get_comm_status, get_comm_status},
    {methods::group_start, group_start},
    {methods::group_end, group_end},
    {methods::all_reduce_ring, all_reduce_ring},
    {methods::all_reduce, all_reduce},
    {methods::naive_all_reduce, naive_all_reduce},
    {methods::memcpy, copy},
    {methods::comm_destroy, comm_destroy},
    {methods::comm_finalize, comm_finalize},
    {methods::comm_remove_device, comm_remove_device},
    {methods::heartbeat, heartbeat},
    {methods::get_device_metadata, get_device_metadata},
    {methods::begin_send, begin_send},
    {methods::begin_receive, begin_receive},
    {methods::stream_send, take_chunk},
    {methods::get_stream_status, get_stream_status},
    {methods::device_memcpy, copy},
    {methods::setup_communication, setup_communication},
    {methods::reset_gpu, reset_gpu},
    {methods::device_heartbeat, device_heartbeat},
  };
  return result;
}

/// How often idle communicators are looked for.
caf::timespan look_every(const dialect& form) {
  return std::clamp<caf::timespan>(form.idle_limit / 4, std::chrono::milliseconds{100}, std::chrono::seconds{30});
}

} // namespace

void course_desk_state::start(course_desk_actor::pointer me, course_desk_options opts) {
  self = me;
  options = std::move(opts);
  devices.emplace(options.listener.form, options.listener.devices);
  self->monitor(options.coordinator);
  self->set_down_handler([this](const caf::down_msg& x) { self->quit(x.reason); });
  self->delayed_send(course_desk_actor{self}, look_every(form()), atom::tick_v);
}

void course_desk_state::serve(const call_pointer& call) {
  call->started(now(), form().call_limit);
  const auto i = handlers().find(call->origin().method);
  ensure(i != handlers().end(), "each method that is served has a handler");
  i->second(*this, call);
}

course_communicator* course_desk_state::communicator_for(const call_pointer& call, uint64_t id) {
  auto found = communicators.find(id);
  if (!found) {
    call->fail(found.error());
    return nullptr;
  }
  (*found)->last_used = std::max((*found)->last_used, now());
  return *found;
}

void course_desk_state::note_members(course_communicator& x, const gpu_sim::GetCommStatusResponse& status) {
  for (auto& [lost, spare] : x.update(status.epoch(), status.devices()))
    devices->replaced(lost, spare);
}

void course_desk_state::destroy_idle() {
  for (auto id : communicators.idle_since(now() - form().idle_limit)) {
    proto::CommDestroyRequest request;
    request.set_comm_id(communicators.find_or_null(id)->now().value);
    request.set_reason("no client of the gateway uses it");
    communicators.remove(id, communicator_table::end::expired);
    spdlog::info("gRPC {}: communicator {} is destroyed: no client has used it within idle-limit",
                 options.listener.name, id);
    constexpr auto limit = std::chrono::minutes{1};
    self->request(options.coordinator, limit, std::move(request))
      .then([](const proto::CommDestroyResponse&) {},
            [id](const caf::error& problem) {
              spdlog::warn("communicator {} could not be destroyed: {}", id, render(problem));
            });
  }
  self->delayed_send(course_desk_actor{self}, look_every(form()), atom::tick_v);
}

caf::error course_desk_state::no_answer(const caf::error& problem) {
  if (problem == caf::sec::request_timeout)
    return make_error(errc::timed_out, "the cluster did not answer within the limit of the call");
  if (problem == errc::too_many || problem == errc::permission_denied) // it lives, and has refused the call
    return problem;
  return make_error(errc::unreachable, fmt::format("the coordinator is gone: {}", render(problem)));
}

course_desk_actor::behavior_type course_desk(course_desk_actor::stateful_pointer<course_desk_state> self,
                                             course_desk_options options) {
  auto& state = self->state;
  state.start(self, std::move(options));
  return {
    [&state](const call_pointer& call) { state.serve(call); },
    [&state](const device_ports& x) { state.devices->listening_at(x.ports); },
    [&state](atom::tick) { state.destroy_idle(); },
  };
}

} // namespace ringmaster::gateway
