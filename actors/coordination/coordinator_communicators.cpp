// The COORDINATOR's communicators: how they are made, of free devices and of each other, and how they end.
#include "actors/communicators/audience.hpp"
#include "actors/coordination/coordinator_requests.hpp"
#include "runtime/coordination/derived_groups.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/request_of.hpp"

#include <algorithm>
#include <caf/send.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace ringmaster {

caf::expected<communicator_actor> coordinator_state::communicator_of(communicator_id id) const {
  auto known = communicators.known(id);
  if (!known)
    return std::move(known.error());
  return caf::actor_cast<communicator_actor>((*known)->handle);
}

caf::error coordinator_state::check_reach(const device_ids& ranks) const {
  if (options.communicators.must_link)
    return check_links(ranks);
  if (!options.communicators.must_share)
    return caf::none;
  auto problem = first_out_of_reach(ranks);
  if (!problem)
    return caf::none;
  return make_error(code_of(problem), fmt::format("{}; route.use is \"memory\": take \"auto\", or devices of this host",
                                                  render(problem)));
}

caf::error coordinator_state::first_out_of_reach(const device_ids& ranks) const {
  for (auto id : ranks) {
    auto& handle = devices.find(id)->handle;
    if (handle.device->node() == self->node())
      continue;
    memory_place nowhere;
    nowhere.device = id;
    auto memory = options.communicators.neighbours->find(handle.memory ? *handle.memory : nowhere);
    if (!memory)
      return std::move(memory.error());
  }
  return caf::none;
}

caf::error coordinator_state::check_links(const device_ids& ranks) const {
  auto process = [&](device_id id) { return devices.find(id)->handle.device->node(); };
  auto apart = [&](device_id id) { return process(id) != process(ranks.front()); };
  if (std::none_of(ranks.begin(), ranks.end(), apart))
    return caf::none; // within a process blocks go from memory to memory
  for (auto id : ranks) {
    auto& place = devices.find(id)->handle.memory;
    if (place == nullptr || place->link.process == 0)
      return make_error(
        errc::unreachable,
        fmt::format("{}: its process takes no bulk connections, as its log says with the reason; route.use is "
                    "\"link\": take \"auto\", or name addresses at which it can (link.addresses)",
                    text_of(id)));
  }
  return caf::none;
}

gpu_sim::CommInitResponse coordinator_state::make_communicator(const device_ids& ranks, known_communicator like) {
  auto opts = options.communicators;
  mark_ids();
  opts.id = communicators.new_id();
  opts.policy = like.policy;
  opts.deterministic = like.deterministic;
  opts.name = like.name;
  opts.coordinator = self;
  gpu_sim::CommInitResponse response;
  std::vector<gpu_sim::DeviceMetadata> metadata;
  device_handles handles;
  for (auto id : ranks) {
    devices.take(id, opts.id);
    if (like.policy != proto::REPLACE) // nobody will say what becomes of them
      copies.forget(id);
    auto& device = *devices.find(id);
    *response.add_devices() = device.metadata;
    metadata.push_back(device.metadata);
    handles.push_back(device.handle);
  }
  // The client's next call may be a BeginSend: it must find its ranks, and what we tell a device comes in this order.
  proto::Members members;
  members.set_comm_id(opts.id.value);
  members.set_epoch(1);
  *members.mutable_devices() = response.devices();
  audience all{self, audience::who::devices};
  for (size_t i = 0; i < ranks.size(); ++i)
    all.add(ranks[i], handles[i], opts.speak_by_relays);
  all.tell(membership::of(std::move(members), handles));
  auto handle = self->spawn<fair_communicator, caf::monitored>(opts, std::move(metadata), std::move(handles));
  like.handle = caf::actor_cast<caf::strong_actor_ptr>(handle);
  like.lost.clear();
  communicators.made(opts.id, std::move(like));
  response.set_success(true);
  response.set_commid(opts.id.value);
  return response;
}

caf::result<proto::CommDeriveResponse> coordinator_state::derive(const proto::CommDeriveRequest& x) {
  auto owner = x.outlives_client() ? caf::actor_addr{} : calling_client();
  auto promise = self->make_response_promise<proto::CommDeriveResponse>();
  gpu_sim::GetCommStatusRequest who;
  who.set_commid(x.comm_id());
  who.set_readonly(true);
  ask_communicator_then<gpu_sim::GetCommStatusResponse>(
    *this, communicator_id{x.comm_id()}, who, options.request_limit,
    [this, x, promise, owner](const gpu_sim::GetCommStatusResponse& members) mutable {
      promise.deliver(derive_from(members, x, owner));
    },
    refuse_by(promise));
  return promise;
}

proto::CommDeriveResponse coordinator_state::derive_from(
  const gpu_sim::GetCommStatusResponse& members, const proto::CommDeriveRequest& x, const caf::actor_addr& owner) {
  auto no = [&](const caf::error& problem) {
    proto::Record record;
    auto& refused = *record.mutable_communicator_refused();
    refused.set_call("CommDerive");
    refused.set_parent_id(x.comm_id());
    refused.set_reason(render(problem));
    journal(std::move(record));
    return refusal<proto::CommDeriveResponse>(problem);
  };
  auto parent = communicators.find(communicator_id{x.comm_id()});
  if (parent == nullptr || members.devices().empty())
    return no(make_error(errc::unknown_communicator, fmt::format("communicator {} has ended", x.comm_id())));
  device_ids ranks;
  for (auto& device : members.devices())
    ranks.push_back(id_of(device));
  auto wanted = derived_groups(x, ranks, devices);
  if (!wanted)
    return no(wanted.error());
  std::vector<device_ids> groups;
  for (auto& part : *wanted)
    groups.push_back(part.second);
  if (auto problem = communicators.admit(groups.size()))
    return no(problem);
  if (auto problem = devices.check(groups))
    return no(problem);
  for (auto& group : groups)
    if (auto problem = check_reach(group))
      return no(problem);
  auto like = *parent;
  like.outlives_client = !owner;
  like.name.clear(); // that is the whole one's
  proto::CommDeriveResponse result;
  for (auto& [color, members_of_it] : *wanted) {
    auto& part = *result.add_parts();
    part.set_color(color);
    *part.mutable_comm() = make_communicator(members_of_it, like);
    own(owner, communicator_id{part.comm().commid()});
  }
  result.set_success(true);
  return result;
}

void coordinator_state::communicator_ended(communicator_id id, const caf::error& reason) {
  auto ended = communicators.ended(id, reason);
  if (!ended)
    return;
  meetings_.ended(id);
  owned_.ended(id);
  forget_idle_clients();
  auto members = devices.leave(id);
  for (auto device : ended->lost)
    if (!communicators.inputs_wanted(device))
      copies.forget(device);
  if (reason)
    communicator_failed(id, reason, members);
  communicator_calls.gone(id, communicators.known(id).error());
  serve_spares(); // its devices are free, and the spares that it asked for are not wanted
}

void coordinator_state::communicator_failed(communicator_id id, const caf::error& reason, const device_ids& members) {
  spdlog::error("communicator {} has failed: {}", id, render(reason));
  proto::ClusterInfo::Gone gone;
  gone.set_what(proto::ClusterInfo::Gone::COMMUNICATOR);
  gone.set_id(id.value);
  gone.set_cause(render(reason));
  note_gone(std::move(gone));
  // Its commands would block the streams for ever. Nobody wants the answers.
  proto::Quiesce stop;
  stop.set_comm_id(id.value);
  stop.set_epoch(UINT64_MAX);
  stop.set_forget(true);
  proto::Members nobody;
  nobody.set_comm_id(id.value);
  for (auto member : members) {
    auto& handle = devices.find(member)->handle;
    caf::anon_send(caf::actor_cast<stream_actor>(handle.stream), stop);
    caf::anon_send(caf::actor_cast<device_actor>(handle.device), membership::of(nobody, {}));
  }
}

void coordinator_state::place_filled(device_id device, communicator_id communicator) {
  communicators.place_filled(device, communicator);
  if (!communicators.inputs_wanted(device))
    copies.forget(device);
}

void coordinator_state::note_checkpoints(const proto::CollectiveRequest& x, sequence_number sequence) {
  auto& what = x.collective();
  auto world = request_of(what, static_cast<uint32_t>(std::max(x.inputs_size(), x.outputs_size())), 0);
  for (uint32_t rank = 0; rank < world.world_size; ++rank) {
    auto given = static_cast<int>(rank) < x.inputs_size() ? x.inputs(static_cast<int>(rank)) : 0;
    auto bytes = input_count(what.kind(), world, rank) * size_of(what.datatype());
    if (given == 0 || bytes == 0)
      continue;
    auto address = given;
    if (x.outputs().empty())
      address += in_place(what.kind(), world, rank).input * size_of(what.datatype());
    for (auto& [id, device] : devices.devices()) {
      if (!within(device.metadata, address, 1) || !copies.find(id, address, bytes))
        continue;
      proto::Record record;
      auto& checkpoint = *record.mutable_input_checkpoint();
      checkpoint.set_comm_id(x.comm_id());
      checkpoint.set_sequence(sequence.value);
      checkpoint.set_device_id(id.value);
      checkpoint.set_address(address);
      checkpoint.set_bytes(bytes);
      journal(std::move(record));
    }
  }
}

} // namespace ringmaster
