// The COORDINATOR's devices and nodes: how they come and how they go.
#include "actors/coordination/coordinator.hpp"

#include "actors/calls/answers.hpp"
#include "messages/received_handles.hpp"
#include "runtime/coordination/common_route.hpp"
#include "runtime/coordination/job_check.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/text/version_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <vector>

namespace ringmaster {

proto::NodeJoinResponse coordinator_state::node_joined(const proto::NodeJoinRequest& x,
                                                       const caf::strong_actor_ptr& node) {
  if (auto problem = check_protocol(fmt::format("node {}", x.name()), x.protocol(), "the coordinator"))
    return refusal<proto::NodeJoinResponse>(problem);
  if (auto problem = check_route(fmt::format("node {}", x.name()), x.route(), options.route))
    return refusal<proto::NodeJoinResponse>(problem);
  if (!node)
    return refusal<proto::NodeJoinResponse>(errc::device_lost, fmt::format("node {} has ended", x.name()));
  if (auto problem = check_job(fmt::format("node {}", x.name()), x.job(), options.job))
    return refusal<proto::NodeJoinResponse>(problem);
  mark_ids();
  // A process has one node. Where it joins again, its former node and the devices of that have ended, though the
  // connection that would say so may be open for some time.
  const auto former = std::ranges::find_if(devices.nodes(), [&](auto& other) {
    auto& about = other.second.about;
    return about.name() == x.name() && about.pid() == x.pid() && about.hostname() == x.hostname();
  });
  if (former != devices.nodes().end()) {
    const node_id ended{former->first};
    std::vector<device_id> its_devices;
    for (auto& [id, device] : devices.devices())
      if (device.node == ended)
        its_devices.push_back(id);
    for (auto id : its_devices)
      fence(id, {"its node was started again", "monitor", now_ns()});
    node_gone(ended, make_error(errc::device_lost, "it was started again"), false);
  }
  auto id = devices.node_joined(x, node, now_ns());
  if (!id)
    return refusal<proto::NodeJoinResponse>(id.error());
  self->monitor(caf::actor_cast<caf::actor>(node));
  if (node->node() != self->node())
    devices.tell_places(); // until now all was in this process, of which nobody need say more
  proto::Record record;
  auto& joined = *record.mutable_node_joined();
  joined.set_node_id(id->value);
  joined.set_name(x.name());
  joined.set_pid(x.pid());
  joined.set_host(x.hostname());
  journal(std::move(record));
  proto::NodeJoinResponse answer;
  answer.set_node_id(id->value);
  answer.set_time_ns(now_ns());
  answer.set_route(options.route);
  answer.set_same_clock(x.host_id() != 0 && x.host_id() == this_host());
  answer.set_clock_offset_ns(options.clock.offset_ns);
  return answer;
}

namespace {

proto::NodePeers::Peer peer_of(const known_node& node) {
  proto::NodePeers::Peer result;
  result.set_name(node.about.name());
  result.set_host(node.about.host());
  result.set_port(node.about.port());
  result.set_link_process(node.about.link_process());
  return result;
}

} // namespace

void coordinator_state::introduce_nodes() {
  proto::NodePeers peers;
  for (auto& [id, node] : devices.nodes())
    if (node.about.port() != 0)
      *peers.add_peers() = peer_of(node);
  for (auto& [id, node] : devices.nodes())
    self->send(caf::actor_cast<node_actor>(node.handle), peers);
}

void coordinator_state::nodes_apart(const proto::NodeApart& x) {
  node_id node{x.node_id()};
  const auto why = x.why().empty() ? caf::error{} : make_error(errc::unreachable, x.why());
  devices.node_apart(node, x.peer(), why);
  if (!why)
    return;
  proto::WayLost lost;
  lost.set_reason(fmt::format("nodes {} and {} have no direct way to each other: {}", devices.name_of(node), x.peer(),
                              x.why()));
  for (auto id : devices.shared_by(node, x.peer()))
    if (auto communicator = communicator_of(id))
      self->send(*communicator, lost);
  // Both know that the old connection is gone, so a new one can be made.
  if (auto both = devices.apart_from_each_other(node, x.peer()); !both.empty()) {
    self->send(caf::actor_cast<node_actor>(both[0].handle), peer_of(both[1]));
    self->send(caf::actor_cast<node_actor>(both[1].handle), peer_of(both[0]));
  }
}

void coordinator_state::node_gone(node_id id, const caf::error& reason, bool left) {
  auto place = devices.place_of(id);
  auto node = devices.node_gone(id);
  if (!node)
    return;
  silent_since.erase(id);
  auto cause = cause_of_end(id, reason);
  auto& its_name = node->about.name();
  proto::Record record;
  record.mutable_node_left()->set_node_id(id.value);
  record.mutable_node_left()->set_name(its_name);
  record.mutable_node_left()->set_cause(cause);
  record.mutable_node_left()->set_lost(!left);
  journal(std::move(record));
  proto::ClusterInfo::Gone gone;
  gone.set_what(proto::ClusterInfo::Gone::NODE);
  gone.set_id(id.value);
  gone.set_name(its_name);
  gone.set_cause(cause);
  gone.set_left(left);
  note_gone(std::move(gone));
  if (left)
    spdlog::debug("node {} has left: {}", place, cause);
  else
    spdlog::info("node {} is lost: {}", place, cause);
  introduce_nodes(); // nobody need look for it
  node_drained(id, place, reason);
}

void coordinator_state::device_ready(const proto::DeviceReady& x, const device_handle& its_handle) {
  const auto handle = received(self->system(), its_handle);
  node_id node{x.node_id()};
  auto metadata = x.metadata();
  if (handle.device->node() != self->node())
    metadata.set_place(devices.place_of(node));
  devices.joined({metadata, handle, node, {}});
  self->monitor(caf::actor_cast<caf::actor>(handle.device));
  proto::Record record;
  auto& joined = *record.mutable_device_joined();
  *joined.mutable_metadata() = metadata;
  joined.set_node_id(x.node_id());
  joined.set_node_name(devices.name_of(node));
  spdlog::debug("device 0x{:x} joined, on {}", id_of(x.metadata()), devices.place_of(node));
  journal(std::move(record));
  serve_info_waiters();
  serve_spares();
  serve_inits();
}

void coordinator_state::device_gone(device_id id, const departure& how) {
  drop_rank_calls(id);
  auto device = devices.gone(id, how.cause);
  if (!device)
    return;
  bool left = how.noticed_by.empty();
  proto::Record record;
  if (left) {
    record.mutable_device_left()->set_device_id(id.value);
    record.mutable_device_left()->set_cause(how.cause);
    spdlog::debug("{} has left: {}", text_of(device->metadata), how.cause);
  } else {
    auto& died = *record.mutable_device_died();
    died.set_device_id(id.value);
    died.set_cause(how.cause);
    died.set_noticed_by(how.noticed_by);
    died.set_noticed_ns(how.noticed_ns);
    spdlog::info("{} is lost, noticed by {}: {}", text_of(device->metadata), how.noticed_by, how.cause);
  }
  journal(std::move(record));
  proto::ClusterInfo::Gone gone;
  gone.set_what(proto::ClusterInfo::Gone::DEVICE);
  gone.set_id(id.value);
  gone.set_cause(how.cause);
  gone.set_left(left);
  gone.set_name(name_of_node(device->node));
  for (auto number : device->communicators)
    gone.add_comm_ids(number.value);
  note_gone(std::move(gone));
  owned_.gone(id);
  forget_idle_clients();
  if (auto& mapped = options.communicators.neighbours; mapped && device->handle.memory)
    mapped->forget(*device->handle.memory);
  if (device->communicators.empty() || !communicators.all_replace(device->communicators))
    copies.forget(id);
  else
    communicators.member_lost(id, device->communicators); // a spare may want them
  device_calls.gone(id, make_error(errc::device_lost, fmt::format("{} died while it was asked: {}",
                                                                  text_of(device->metadata), how.cause)));
  rank_lost(id, how.cause);
  serve_drains();
}

void coordinator_state::member_lost(const proto::MemberLost& x) {
  departure how{x.cause(), x.noticed_by(), x.noticed_ns()};
  if (x.fence())
    fence(device_id{x.device_id()}, how);
  else
    device_gone(device_id{x.device_id()}, how); // unless the coordinator's own monitor was faster
}

void coordinator_state::fence(device_id id, const departure& how) {
  auto device = devices.find(id);
  if (device == nullptr)
    return;
  auto handle = device->handle;
  auto all = device->communicators; // one that stands still sends no word of its end: each is told
  note_silence(device->node, how.noticed_ns != 0 ? how.noticed_ns : now_ns()); // the process may stand still
  device_gone(id, how);
  proto::MemberLost lost;
  lost.set_device_id(id.value);
  lost.set_cause(how.cause);
  lost.set_noticed_by(how.noticed_by);
  for (auto number : all)
    if (auto communicator = communicator_of(number))
      self->send(*communicator, lost);
  self->send_exit(caf::actor_cast<caf::actor>(handle.device),
                  make_error(errc::suspected, (how.noticed_by == "memory" ? "" : "ended on suspicion: ") + how.cause));
}

bool coordinator_state::may_replace(device_id id) const {
  auto device = devices.find(id);
  return device != nullptr && communicators.all_replace(device->communicators);
}

void coordinator_state::will_change(device_id id, uint64_t address, uint64_t bytes) {
  auto device = devices.find(id);
  if (device != nullptr && within(device->metadata, address, bytes))
    copies.will_change(id, address, bytes);
}

} // namespace ringmaster
