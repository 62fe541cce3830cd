#include "gateway/course/communicator_calls.hpp"

#include "gateway/course/device_calls.hpp"
#include "messages/errc.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <tuple>

namespace ringmaster::gateway {

namespace {

/// Devices for a communicator.
struct chosen_devices {
  std::vector<device_id> ranks; ///< In rank order.
  std::vector<device_id> free;  ///< Those that must be in no communicator when it is made.
};

/// The devices for a communicator of `wanted` ranks: free ones, or, where the dialect shares, also those that were
/// longest without use. Errors: too_few_devices.
caf::expected<chosen_devices> choose_devices(course_desk_state& desk, const proto::ClusterInfo& cluster,
                                             size_t wanted) {
  std::set<uint64_t> draining;
  for (auto& node : cluster.nodes())
    if (node.draining())
      draining.insert(node.node_id());
  struct candidate {
    device_id device;
    size_t users;
    course_communicator::time_point last_used;
  };
  std::vector<candidate> candidates;
  const auto placed = desk.devices->placed();
  for (auto& x : cluster.devices()) {
    const device_id device{x.metadata().deviceid().value()};
    const bool may_serve = !desk.devices->has_places() || std::ranges::count(placed, device) > 0;
    if (!may_serve || draining.count(x.node_id()) > 0)
      continue;
    const auto* latest = desk.communicators.latest_of(device);
    candidates.push_back({device, static_cast<size_t>(x.comm_ids_size()) + desk.promised.count(device),
                          latest ? latest->last_used : course_communicator::time_point{}});
  }
  if (desk.devices->has_places())
    std::ranges::sort(candidates, {}, [&](auto& x) { return std::ranges::find(placed, x.device) - placed.begin(); });
  std::ranges::stable_sort(candidates, {}, [](auto& x) { return std::tuple{x.users, x.last_used}; });
  const auto free = static_cast<size_t>(std::ranges::count(candidates, size_t{0}, &candidate::users));
  const auto usable = desk.form().on_shortage == dialect::shortage::share ? candidates.size() : free;
  if (usable < wanted)
    return make_error(errc::too_few_devices,
                      fmt::format("CommInit wants {} devices, and of {} {} are free", wanted, candidates.size(), free));
  chosen_devices result;
  for (size_t i = 0; i < wanted; ++i) {
    result.ranks.push_back(candidates[i].device);
    if (candidates[i].users == 0)
      result.free.push_back(candidates[i].device);
  }
  return result;
}

gpu_sim::CommInitRequest init_request(const course_desk_state& desk) {
  gpu_sim::CommInitRequest result;
  using policy = dialect::loss_policy;
  switch (desk.form().on_loss) {
    case policy::as_configured: result.set_defaultpolicy(true); break;
    case policy::shrink: result.set_policy(proto::SHRINK); break;
    case policy::replace: result.set_policy(proto::REPLACE); break;
    case policy::abort: result.set_policy(proto::ABORT); break;
  }
  return result;
}

void note_made(course_desk_state& desk, const gpu_sim::CommInitResponse& made) {
  for (auto& x : made.devices())
    desk.devices->learn(x);
  desk.communicators.add(made, desk.now());
}

void answer_init(course_desk_state& desk, const call_pointer& call, const gpu_sim::CommInitResponse& made) {
  course::CommInitResponse answer;
  answer.set_success(true);
  answer.set_commid(made.commid());
  for (auto& x : made.devices())
    *answer.add_devices() = metadata_for_clients(desk, cluster_memory::of(x));
  call->answer(answer);
}

using init_then = std::function<void(const gpu_sim::CommInitResponse&)>;
using init_otherwise = std::function<void(const caf::error&)>;

/// Makes a communicator of these devices.
void ask_for_communicator(course_desk_state& desk, const call_pointer& call, const chosen_devices& chosen,
                          init_then then, init_otherwise otherwise) {
  auto request = init_request(desk);
  for (auto device : chosen.ranks) {
    request.add_deviceids(device.value);
    desk.promised.insert(device);
  }
  for (auto device : chosen.free)
    request.add_freedeviceids(device.value);
  auto made_or_not = [&desk, devices = chosen.ranks] {
    for (auto device : devices)
      desk.promised.erase(desk.promised.find(device));
  };
  desk.ask_or<gpu_sim::CommInitResponse>(
    call,
    [&desk, made_or_not, then = std::move(then)](const gpu_sim::CommInitResponse& made) {
      made_or_not();
      note_made(desk, made);
      then(made);
    },
    [made_or_not, otherwise = std::move(otherwise)](const caf::error& problem) {
      made_or_not();
      otherwise(problem);
    },
    std::move(request));
}

/// How often devices are chosen for one call. Between the choice and the coordinator's answer another client may take
/// one of them, or it may leave.
constexpr int choices_max = 8;

void init_on_chosen(course_desk_state& desk, const call_pointer& call, size_t wanted, int choice = 1) {
  desk.refresh_devices(call, [&desk, call, wanted, choice](const proto::ClusterInfo& cluster) {
    auto chosen = choose_devices(desk, cluster, wanted);
    if (!chosen)
      return call->fail(chosen.error());
    ask_for_communicator(
      desk, call, *chosen, [&desk, call](const gpu_sim::CommInitResponse& made) { answer_init(desk, call, made); },
      [&desk, call, wanted, choice](const caf::error& problem) {
        const auto code = code_of(problem);
        if (code != errc::in_use && code != errc::unknown_device)
          return call->fail(problem);
        if (choice < choices_max)
          return init_on_chosen(desk, call, wanted, choice + 1);
        call->fail(make_error(errc::too_few_devices,
                              fmt::format("devices were chosen {} times, and each time one of them was taken by another "
                                          "client or had left: call CommInit again. The last: {}",
                                          choices_max, render(problem))));
      });
  });
}

void init_anywhere(course_desk_state& desk, const call_pointer& call, uint32_t wanted) {
  auto request = init_request(desk);
  request.set_numdevices(wanted);
  desk.ask_or<gpu_sim::CommInitResponse>(
    call,
    [&desk, call](const gpu_sim::CommInitResponse& made) {
      note_made(desk, made);
      if (!desk.devices->has_places())
        return answer_init(desk, call, made);
      desk.refresh_devices(call, [&desk, call, made](const proto::ClusterInfo&) { answer_init(desk, call, made); });
    },
    [&desk, call, wanted](const caf::error& problem) {
      if (code_of(problem) != errc::too_few_devices || desk.form().on_shortage == dialect::shortage::refuse)
        return call->fail(problem);
      init_on_chosen(desk, call, wanted);
    },
    std::move(request));
}

void init_at_addresses(course_desk_state& desk, const call_pointer& call, const std::vector<std::string>& addresses) {
  auto find = [&desk, addresses] { return desk.devices->at_addresses(addresses); };
  desk.with_device(call, find, [&desk, call](const std::vector<device_id>& devices) {
    init_on(desk, call, devices,
            [&desk, call](const gpu_sim::CommInitResponse& made) { answer_init(desk, call, made); });
  });
}

/// A call that names a communicator and is passed on.
template <class Request, class Forwarded, class Answer>
void pass_on(
  course_desk_state& desk, const call_pointer& call,
  std::function<void(course_communicator&)> when_done = [](course_communicator&) {}) {
  auto request = request_of<Request>(call);
  if (!request)
    return;
  auto* communicator = desk.communicator_for(call, request->commid());
  if (communicator == nullptr)
    return;
  Forwarded forwarded;
  forwarded.set_commid(communicator->now().value);
  desk.ask<Answer>(
    call,
    [&desk, call, when_done, id = request->commid()](const Answer& x) {
      if (auto* known = desk.communicators.find_or_null(id))
        when_done(*known);
      if constexpr (requires { x.success(); }) {
        course::GroupStartResponse answer; // all of these are alike
        answer.set_success(x.success());
        call->answer(answer);
      }
    },
    std::move(forwarded));
}

/// Destroys it; `ended`: what its id stands for afterwards.
void destroy(course_desk_state& desk, const call_pointer& call, uint64_t id, communicator_id now,
             communicator_table::end ended) {
  proto::CommDestroyRequest request;
  request.set_comm_id(now.value);
  desk.ask<proto::CommDestroyResponse>(
    call,
    [&desk, call, id, ended](const proto::CommDestroyResponse&) {
      desk.communicators.remove(id, ended);
      course::CommDestroyResponse answer; // CommFinalizeResponse is alike
      answer.set_success(true);
      call->answer(answer);
    },
    std::move(request));
}

} // namespace

void init_on(course_desk_state& desk, const call_pointer& call, const std::vector<device_id>& devices,
             std::function<void(const gpu_sim::CommInitResponse&)> then) {
  ask_for_communicator(desk, call, {devices, {}}, std::move(then),
                       [call](const caf::error& problem) { call->fail(problem); });
}

void comm_init(course_desk_state& desk, const call_pointer& call) {
  auto request = request_of<course::CommInitRequest>(call);
  if (!request)
    return;
  const auto wanted = request->numdevices();
  const auto& named = request->deviceaddresses();
  if (named.empty() && wanted == 0)
    return call->fail(invalid("CommInit wants 0 devices, and a communicator has at least 1"));
  if (!named.empty() && wanted != 0 && static_cast<int64_t>(wanted) != named.size())
    return call->fail(invalid(fmt::format("CommInit wants {} devices, and names {}", wanted, named.size())));
  if (!named.empty())
    return init_at_addresses(desk, call, {named.begin(), named.end()});
  // Where it may, the coordinator chooses: a choice made here may be late, and is then made again.
  if (desk.devices->has_a_place_for_each())
    return init_anywhere(desk, call, wanted);
  init_on_chosen(desk, call, wanted);
}

void get_comm_status(course_desk_state& desk, const call_pointer& call) {
  auto request = request_of<course::GetCommStatusRequest>(call);
  if (!request)
    return;
  auto* communicator = desk.communicator_for(call, request->commid());
  if (communicator == nullptr)
    return;
  gpu_sim::GetCommStatusRequest forwarded;
  forwarded.set_commid(communicator->now().value);
  desk.ask<gpu_sim::GetCommStatusResponse>(
    call,
    [&desk, call, id = request->commid()](const gpu_sim::GetCommStatusResponse& x) {
      auto status = x.status();
      bool has_run = true;
      if (auto* known = desk.communicators.find_or_null(id)) {
        desk.note_members(*known, x);
        if (status == gpu_sim::FAILED)
          known->failed = error_in(x);
        else if (status == gpu_sim::SUCCESS && known->failed) // the cluster reports a failure once
          status = gpu_sim::FAILED;
        has_run = known->has_run;
      }
      const bool is_first = !has_run && status == gpu_sim::SUCCESS;
      course::GetCommStatusResponse answer;
      answer.set_status(static_cast<course::Status>(is_first ? desk.form().first_status_number()
                                                             : desk.form().number_of(status)));
      call->answer(answer);
    },
    std::move(forwarded));
}

void group_start(course_desk_state& desk, const call_pointer& call) {
  pass_on<course::GroupStartRequest, gpu_sim::GroupStartRequest, gpu_sim::GroupStartResponse>(
    desk, call, [](course_communicator& x) { x.in_group = true; });
}

void group_end(course_desk_state& desk, const call_pointer& call) {
  pass_on<course::GroupEndRequest, gpu_sim::GroupEndRequest, gpu_sim::GroupEndResponse>(
    desk, call, [](course_communicator& x) { x.in_group = false; });
}

void comm_destroy(course_desk_state& desk, const call_pointer& call) {
  auto request = request_of<course::CommDestroyRequest>(call);
  if (!request)
    return;
  if (desk.communicators.is_finalized(request->commid())) {
    course::CommDestroyResponse answer;
    answer.set_success(true);
    return call->answer(answer);
  }
  if (auto* communicator = desk.communicator_for(call, request->commid()))
    destroy(desk, call, request->commid(), communicator->now(), communicator_table::end::destroyed);
}

void comm_finalize(course_desk_state& desk, const call_pointer& call) {
  auto request = request_of<course::CommFinalizeRequest>(call);
  if (!request)
    return;
  auto* communicator = desk.communicator_for(call, request->commid());
  if (communicator == nullptr)
    return;
  proto::CommWaitRequest wait;
  wait.set_comm_id(communicator->now().value);
  wait.set_timeout_ns(static_cast<uint64_t>(call->left(desk.now()).count()));
  desk.ask<gpu_sim::GetCommStatusResponse>(
    call,
    [&desk, call, id = request->commid(), now = communicator->now()](const gpu_sim::GetCommStatusResponse& x) {
      if (x.status() == gpu_sim::IN_PROGRESS)
        return call->fail(error_in(x));
      destroy(desk, call, id, now, communicator_table::end::finalized);
    },
    std::move(wait));
}

void comm_remove_device(course_desk_state& desk, const call_pointer& call) {
  auto request = request_of<course::CommRemoveDeviceRequest>(call);
  if (!request)
    return;
  auto* communicator = desk.communicator_for(call, request->commid());
  if (communicator == nullptr)
    return;
  if (communicator->in_group)
    return call->fail(make_error(errc::group_misuse, "a device is removed outside of a group: call GroupEnd first"));
  auto rank = communicator->present_rank(request->rank().value());
  if (!rank)
    return call->fail(rank.error());
  proto::CommDeriveRequest derive;
  derive.set_comm_id(communicator->now().value);
  derive.mutable_shrink()->add_ranks(*rank);
  desk.ask<proto::CommDeriveResponse>(
    call,
    [&desk, call, id = request->commid()](const proto::CommDeriveResponse& x) {
      auto* known = desk.communicators.find_or_null(id);
      if (known == nullptr || x.parts().empty())
        return call->fail(make_error(errc::unknown_communicator, fmt::format("communicator {} was destroyed", id)));
      proto::CommDestroyRequest former;
      former.set_comm_id(known->now().value);
      known->moved_to(x.parts(0).comm());
      desk.ask<proto::CommDestroyResponse>(
        call,
        [call](const proto::CommDestroyResponse&) {
          course::CommRemoveDeviceResponse answer;
          answer.set_success(true);
          call->answer(answer);
        },
        std::move(former));
    },
    std::move(derive));
}

void heartbeat(course_desk_state& desk, const call_pointer& call) {
  proto::ClusterInfoRequest request;
  request.set_free_max(1);
  desk.ask<proto::ClusterInfo>(
    call,
    [call](const proto::ClusterInfo&) {
      course::HeartbeatResponse answer;
      answer.set_success(true);
      call->answer(answer);
    },
    request);
}

} // namespace ringmaster::gateway
