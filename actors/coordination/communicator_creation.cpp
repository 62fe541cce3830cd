#include "actors/coordination/communicator_creation.hpp"

#include "actors/communicators/audience.hpp"
#include "actors/coordination/coordinator_requests.hpp"
#include "messages/try.hpp"
#include "runtime/coordination/derived_groups.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace ringmaster {

namespace {

/// Whether blocks can get to all of these devices over bulk connections.
caf::error check_links(const coordinator_state& state, const device_ids& ranks) {
  auto process = [&](device_id id) { return state.devices.find(id)->handle.device->node(); };
  auto apart = [&](device_id id) { return process(id) != process(ranks.front()); };
  if (std::none_of(ranks.begin(), ranks.end(), apart))
    return caf::none; // within a process blocks go from memory to memory
  for (auto id : ranks) {
    auto& place = state.devices.find(id)->handle.memory;
    if (place == nullptr || place->link.process == 0)
      return make_error(
        errc::unreachable,
        fmt::format("{}: its process takes no bulk connections, as its log says with the reason; route.use is "
                    "\"link\": take \"auto\", or name addresses at which it can (link.addresses)",
                    text_of(id)));
  }
  return caf::none;
}

} // namespace

caf::error check_memory_reach(const coordinator_state& state, const device_ids& ranks) {
  for (auto id : ranks) {
    auto& handle = state.devices.find(id)->handle;
    if (handle.device->node() == state.self->node())
      continue;
    memory_place nowhere;
    nowhere.device = id;
    TRY(memory, state.options.communicators.neighbours->find(handle.memory ? *handle.memory : nowhere));
  }
  return caf::none;
}

caf::error check_reach(const coordinator_state& state, const device_ids& ranks) {
  if (state.options.communicators.must_link)
    return check_links(state, ranks);
  if (!state.options.communicators.must_share)
    return caf::none;
  auto problem = check_memory_reach(state, ranks);
  if (!problem)
    return caf::none;
  return make_error(code_of(problem), fmt::format("{}; route.use is \"memory\": take \"auto\", or devices of this host",
                                                  render(problem)));
}

gpu_sim::CommInitResponse made_before(const proto::StoredCommunicator& stored) {
  gpu_sim::CommInitResponse response;
  response.set_success(true);
  response.set_commid(stored.comm_id());
  *response.mutable_devices() = stored.devices();
  return response;
}

gpu_sim::CommInitResponse make_communicator(coordinator_state& state, const device_ids& ranks,
                                            known_communicator like) {
  ensure(!ranks.empty(), "a communicator has a rank");
  auto opts = state.options.communicators;
  state.mark_ids();
  opts.id = state.communicators.new_id();
  opts.policy = like.policy;
  opts.deterministic = like.deterministic;
  opts.name = like.name;
  opts.coordinator = state.self;
  gpu_sim::CommInitResponse response;
  std::vector<gpu_sim::DeviceMetadata> metadata;
  device_handles handles;
  for (auto id : ranks) {
    state.devices.take(id, opts.id);
    if (like.policy != proto::REPLACE) // its inputs will not be needed
      state.copies.forget(id);
    auto& device = *state.devices.find(id);
    *response.add_devices() = device.metadata;
    metadata.push_back(device.metadata);
    handles.push_back(device.handle);
  }
  // The client's next call may be a BeginSend, which must find its ranks: our messages to a device keep their order.
  proto::Members members;
  members.set_comm_id(opts.id.value);
  members.set_epoch(1);
  *members.mutable_devices() = response.devices();
  audience all{state.self, audience::who::devices};
  for (size_t i = 0; i < ranks.size(); ++i)
    all.add(ranks[i], handles[i], opts.speak_by_relays);
  all.tell(membership::of(std::move(members), handles));
  auto handle = state.self->spawn<fair_communicator, caf::monitored>(opts, std::move(metadata), std::move(handles));
  like.handle = caf::actor_cast<caf::strong_actor_ptr>(handle);
  like.lost.clear();
  ensure(state.devices.members_of(opts.id).size() == ranks.size(),
         "each rank of a communicator has a device of its own");
  auto& stored = like.stored;
  const auto maker = stored.maker(); // of its parent, if it has one
  stored.Clear();
  stored.set_maker(maker);
  stored.set_comm_id(opts.id.value);
  stored.set_policy(like.policy);
  stored.set_deterministic(like.deterministic);
  stored.set_outlives_client(like.outlives_client);
  stored.set_name(like.name);
  *stored.mutable_devices() = response.devices();
  state.communicators.made(opts.id, std::move(like));
  state.access.restored(opts.id, maker);
  state.store_communicator(opts.id, [](auto&) {});
  response.set_success(true);
  response.set_commid(opts.id.value);
  return response;
}

namespace {

/// What a call has made that is sent again, since the coordinator was restarted before it was answered.
std::optional<proto::CommDeriveResponse> derived_before(const coordinator_state& state,
                                                        const proto::CommDeriveRequest& x) {
  const auto made = state.communicators.made_by(x.caller(), x.call_number());
  if (made.empty())
    return std::nullopt;
  auto result = verdict<proto::CommDeriveResponse>(caf::none);
  for (auto id : made) {
    auto& stored = state.communicators.find(id)->stored;
    auto& part = *result.add_parts();
    part.set_color(stored.color());
    *part.mutable_comm() = made_before(stored);
  }
  return result;
}

/// `members`: the present state of the communicator whose devices these are.
proto::CommDeriveResponse derive_from(coordinator_state& state, const gpu_sim::GetCommStatusResponse& members,
                                      const proto::CommDeriveRequest& x, const caf::actor_addr& owner,
                                      const calling_process& caller) {
  auto no = [&](const caf::error& problem) {
    proto::Record record;
    auto& refused = *record.mutable_communicator_refused();
    refused.set_call("CommDerive");
    refused.set_parent_id(x.comm_id());
    refused.set_reason(render(problem));
    state.journal(std::move(record));
    return refusal<proto::CommDeriveResponse>(problem);
  };
  auto parent = state.communicators.find(communicator_id{x.comm_id()});
  if (parent == nullptr || members.devices().empty())
    return no(make_error(errc::unknown_communicator, fmt::format("communicator {} has ended", x.comm_id())));
  device_ids ranks;
  for (auto& device : members.devices())
    ranks.push_back(id_of(device));
  auto wanted = derived_groups(x, ranks, state.devices);
  if (!wanted)
    return no(wanted.error());
  std::vector<device_ids> groups;
  for (auto& part : *wanted)
    groups.push_back(part.second);
  if (auto problem = state.communicators.admit(groups.size()))
    return no(problem);
  if (auto problem = state.devices.check(groups))
    return no(problem);
  for (auto& group : groups)
    if (auto problem = check_reach(state, group))
      return no(problem);
  auto like = *parent;
  like.outlives_client = !owner;
  like.name.clear(); // the name is the parent's
  proto::CommDeriveResponse result;
  for (auto& [color, members_of_it] : *wanted) {
    auto& part = *result.add_parts();
    part.set_color(color);
    *part.mutable_comm() = make_communicator(state, members_of_it, like);
    const auto made = id_of(part.comm());
    state.store_communicator(made, [&, its_color = color](auto& stored) {
      stored.set_color(its_color);
      stored.set_caller(x.caller());
      stored.set_call_number(x.call_number());
    });
    state.clients.own(owner, made);
    state.access.made(made, caller, members_of_it.size());
  }
  result.set_success(true);
  return result;
}

} // namespace

caf::result<proto::CommDeriveResponse> derive(coordinator_state& state, const proto::CommDeriveRequest& x) {
  auto owner = x.outlives_client() ? caf::actor_addr{} : state.clients.calling_client();
  auto promise = state.self->make_response_promise<proto::CommDeriveResponse>();
  if (auto before = derived_before(state, x)) {
    promise.deliver(std::move(*before));
    return promise;
  }
  gpu_sim::GetCommStatusRequest who;
  who.set_commid(x.comm_id());
  who.set_readonly(true);
  ask_communicator_then<gpu_sim::GetCommStatusResponse>(
    state, communicator_id{x.comm_id()}, who, state.options.request_limit,
    [&state, x, promise, owner, caller = state.access.caller()](const gpu_sim::GetCommStatusResponse& members) mutable {
      auto answer = derive_from(state, members, x, owner, caller);
      state.metadata.when_stored([promise, answer]() mutable { promise.deliver(std::move(answer)); });
    },
    refuse_by(promise));
  return promise;
}

} // namespace ringmaster
