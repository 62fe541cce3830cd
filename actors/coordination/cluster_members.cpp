#include "actors/coordination/cluster_members.hpp"

#include "actors/calls/answers.hpp"
#include "actors/coordination/coordinator.hpp"
#include "actors/coordination/liveness_watch.hpp"
#include "messages/metadata.pb.h"
#include "messages/received_handles.hpp"
#include "runtime/coordination/join_checks.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/logging/log.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/text/version_text.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace ringmaster {

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

caf::result<proto::NodeJoinResponse, caf::strong_actor_ptr> cluster_members::let_in(const proto::NodeJoinRequest& x,
                                                                                    const caf::strong_actor_ptr& node) {
  auto promise = coordinator_.self->make_response_promise<proto::NodeJoinResponse, caf::strong_actor_ptr>();
  auto answer = node_joined(x, node);
  coordinator_.metadata.when_stored([this, promise, answer]() mutable {
    promise.deliver(std::move(answer), caf::actor_cast<caf::strong_actor_ptr>(coordinator_.options.journal));
    introduce_nodes();
  });
  return promise;
}

caf::error cluster_members::check(const proto::NodeJoinRequest& x, const caf::strong_actor_ptr& node) const {
  const auto who = fmt::format("node {}", x.name());
  auto problem = check_protocol(who, x.protocol(), "the coordinator");
  if (!problem)
    problem = check_route(who, x.route(), coordinator_.options.route);
  if (!problem && !node)
    problem = make_error(errc::device_lost, who + " has ended");
  return problem ? problem : check_job(who, x.job(), coordinator_.options.job);
}

void cluster_members::end_former(const proto::NodeJoinRequest& x) {
  auto& devices = coordinator_.devices;
  const auto former = std::ranges::find_if(devices.nodes(), [&](auto& other) {
    auto& about = other.second.about;
    return about.name() == x.name() && about.pid() == x.pid() && about.hostname() == x.hostname();
  });
  if (former == devices.nodes().end())
    return;
  const node_id ended{former->first};
  std::vector<device_id> its_devices;
  for (auto& [id, device] : devices.devices())
    if (device.node == ended)
      its_devices.push_back(id);
  for (auto id : its_devices)
    fence(id, {"its node was started again", "monitor", coordinator_.now_ns()});
  node_gone(ended, make_error(errc::device_lost, "it was started again"), false);
}

proto::NodeJoinResponse cluster_members::node_joined(const proto::NodeJoinRequest& x,
                                                     const caf::strong_actor_ptr& node) {
  if (auto problem = check(x, node))
    return refusal<proto::NodeJoinResponse>(problem);
  auto self = coordinator_.self;
  coordinator_.mark_ids();
  end_former(x);
  auto id = coordinator_.devices.node_joined(x, node, coordinator_.now_ns());
  if (!id)
    return refusal<proto::NodeJoinResponse>(id.error());
  self->monitor(caf::actor_cast<caf::actor>(node));
  coordinator_.access.joined(*id);
  if (node->node() != self->node())
    coordinator_.devices.tell_places(); // until now all devices were in this process, which needs no mention
  proto::Record record;
  auto& joined = *record.mutable_node_joined();
  joined.set_node_id(id->value);
  joined.set_name(x.name());
  joined.set_pid(x.pid());
  joined.set_host(x.hostname());
  coordinator_.journal(std::move(record));
  proto::StoredNode stored;
  stored.set_node_id(id->value);
  *stored.mutable_about() = x;
  stored.set_joined_ns(coordinator_.devices.nodes().at(*id).joined_ns);
  coordinator_.metadata.put(metadata_key::of(*id), stored);
  return welcome(x, *id);
}

proto::NodeJoinResponse cluster_members::welcome(const proto::NodeJoinRequest& x, node_id id) const {
  auto& options = coordinator_.options;
  proto::NodeJoinResponse answer;
  *answer.mutable_cluster() = options.identity;
  answer.set_node_id(id.value);
  answer.set_time_ns(coordinator_.now_ns());
  answer.set_route(options.route);
  answer.set_same_clock(x.host_id() != 0 && x.host_id() == this_host());
  answer.set_clock_offset_ns(options.clock.offset_ns);
  return answer;
}

void cluster_members::introduce_nodes() {
  auto& nodes = coordinator_.devices.nodes();
  proto::NodePeers peers;
  for (auto& [id, node] : nodes)
    if (node.about.port() != 0)
      *peers.add_peers() = peer_of(node);
  for (auto& [id, node] : nodes)
    coordinator_.self->send(caf::actor_cast<node_actor>(node.handle), peers);
}

void cluster_members::nodes_disconnected(const proto::NodeApart& x) {
  auto& devices = coordinator_.devices;
  auto self = coordinator_.self;
  node_id node{x.node_id()};
  const auto why = x.why().empty() ? caf::error{} : make_error(errc::unreachable, x.why());
  devices.node_apart(node, x.peer(), why);
  if (!why)
    return;
  when_both_have_answered(node, x.peer(), [this, x] { tell_way_lost(x); });
  // Both know that the old connection is gone, so a new one can be made.
  if (auto both = devices.apart_from_each_other(node, x.peer()); !both.empty()) {
    ensure(both.size() == 2, "two nodes are disconnected from each other");
    self->send(caf::actor_cast<node_actor>(both[0].handle), peer_of(both[1]));
    self->send(caf::actor_cast<node_actor>(both[1].handle), peer_of(both[0]));
  }
}

void cluster_members::when_both_have_answered(node_id one, const std::string& other, std::function<void()> then) {
  constexpr auto limit = std::chrono::milliseconds{100};
  std::vector<node_actor> asked;
  for (auto& [id, node] : coordinator_.devices.nodes())
    if (id == one || node.about.name() == other)
      asked.push_back(caf::actor_cast<node_actor>(node.handle));
  auto due = std::make_shared<size_t>(asked.size());
  const auto note = [due, then = std::move(then)] {
    if (--*due == 0)
      then();
  };
  for (auto& node : asked)
    coordinator_.self->request(node, limit, proto::AliveRequest{})
      .then([note](const proto::AliveResponse&) { note(); }, [note](const caf::error&) { note(); });
}

void cluster_members::tell_way_lost(const proto::NodeApart& x) {
  auto& devices = coordinator_.devices;
  const node_id node{x.node_id()};
  proto::WayLost lost;
  lost.set_reason(fmt::format("nodes {} and {} have no direct connection to each other: {}", devices.name_of(node),
                              x.peer(), x.why()));
  lost.add_nodes(devices.name_of(node));
  lost.add_nodes(x.peer());
  for (auto id : devices.shared_by(node, x.peer()))
    if (auto communicator = coordinator_.communicator_of(id))
      coordinator_.self->send(*communicator, lost);
}

proto::DeviceJoinResponse cluster_members::new_device(const proto::DeviceJoinRequest& x) {
  proto::DeviceJoinResponse answer;
  coordinator_.mark_ids();
  answer.set_device_id(coordinator_.options.ids->new_device(device_id{x.wanted_id()}).value);
  ensure(answer.device_id() != 0, "a device that joins gets an id");
  if (x.wanted_id() != 0 && answer.device_id() != x.wanted_id())
    spdlog::warn("the requested device id 0x{:x} was used before; an id is used once, so the device gets 0x{:x}",
                 x.wanted_id(), answer.device_id());
  return answer;
}

void cluster_members::device_ready(const proto::DeviceReady& x, const device_handle& its_handle) {
  const auto handle = received(coordinator_.self->system(), its_handle);
  auto& devices = coordinator_.devices;
  node_id node{x.node_id()};
  auto metadata = x.metadata();
  if (handle.device->node() != coordinator_.self->node())
    metadata.set_place(devices.place_of(node));
  if (const auto its = devices.nodes().find(node); its != devices.nodes().end()) {
    metadata.set_node(its->second.about.name());
    metadata.set_host(its->second.about.hostname());
    metadata.set_pid(its->second.about.pid());
  }
  if (const auto* known = devices.find(id_of(metadata)); known != nullptr && known->handle.device == handle.device)
    return; // its node said so when it came back
  devices.joined({metadata, handle, node, {}});
  store_device(metadata, node);
  coordinator_.self->monitor(caf::actor_cast<caf::actor>(handle.device));
  proto::Record record;
  auto& joined = *record.mutable_device_joined();
  *joined.mutable_metadata() = metadata;
  joined.set_node_id(x.node_id());
  joined.set_node_name(devices.name_of(node));
  log_info({.node = devices.name_of(node), .device = id_of(x.metadata()).value}, "device 0x{:x} joined, on {}",
           id_of(x.metadata()), devices.place_of(node));
  coordinator_.journal(std::move(record));
  coordinator_.info.serve();
  coordinator_.devices_freed();
  coordinator_.inits.serve();
}

bool cluster_members::ended(const caf::down_msg& x) {
  auto is_source = [&](const caf::strong_actor_ptr& ptr) { return ptr && ptr->address() == x.source; };
  const bool left = !x.reason || x.reason == caf::exit_reason::user_shutdown;
  // Each case returns at once: the maps have changed.
  for (auto& [id, device] : coordinator_.devices.devices())
    if (is_source(device.handle.device)) {
      const auto cause = coordinator_.drains.cause_of_end(device.node, x.reason);
      device_gone(id, {cause, left ? "" : "monitor", coordinator_.now_ns()});
      return true;
    }
  for (auto& [id, node] : coordinator_.devices.nodes())
    if (is_source(node.handle)) {
      node_gone(id, x.reason, left);
      return true;
    }
  return false;
}

void cluster_members::node_gone(node_id id, const caf::error& reason, bool left) {
  auto place = coordinator_.devices.place_of(id);
  auto node = coordinator_.devices.node_gone(id);
  if (!node)
    return;
  coordinator_.silences.node_gone(id);
  coordinator_.access.left(id, left);
  coordinator_.metadata.erase(metadata_key::of(id));
  auto cause = coordinator_.drains.cause_of_end(id, reason);
  auto& its_name = node->about.name();
  proto::Record record;
  record.mutable_node_left()->set_node_id(id.value);
  record.mutable_node_left()->set_name(its_name);
  record.mutable_node_left()->set_cause(cause);
  record.mutable_node_left()->set_lost(!left);
  coordinator_.journal(std::move(record));
  proto::ClusterInfo::Gone gone;
  gone.set_what(proto::ClusterInfo::Gone::NODE);
  gone.set_id(id.value);
  gone.set_name(its_name);
  gone.set_cause(cause);
  gone.set_left(left);
  note_departure(std::move(gone));
  if (left)
    log_info({.node = its_name}, "node {} has left: {}", place, cause);
  else
    log_info({.node = its_name}, "node {} is lost: {}", place, cause);
  introduce_nodes(); // no node need connect to it
  coordinator_.drains.node_gone(id, place, reason);
}

void cluster_members::record_end(device_id id, const known_device& device, const device_end& how) {
  const bool left = how.noticed_by.empty();
  proto::Record record;
  if (left) {
    record.mutable_device_left()->set_device_id(id.value);
    record.mutable_device_left()->set_cause(how.cause);
    log_info({.node = coordinator_.devices.name_of(device.node), .device = id.value}, "{} has left: {}",
             text_of(device.metadata), how.cause);
  } else {
    auto& died = *record.mutable_device_died();
    died.set_device_id(id.value);
    died.set_cause(how.cause);
    died.set_noticed_by(how.noticed_by);
    died.set_noticed_ns(how.noticed_ns);
    if (how.suspicion)
      *died.mutable_suspicion() = *how.suspicion;
    log_info({.node = coordinator_.devices.name_of(device.node), .device = id.value}, "{} is lost, noticed by {}: {}",
             text_of(device.metadata), how.noticed_by, how.cause);
  }
  coordinator_.journal(std::move(record));
  proto::ClusterInfo::Gone gone;
  gone.set_what(proto::ClusterInfo::Gone::DEVICE);
  gone.set_id(id.value);
  gone.set_cause(how.cause);
  gone.set_left(left);
  gone.set_name(name_of(device.node));
  for (auto number : device.communicators)
    gone.add_comm_ids(number.value);
  note_departure(std::move(gone));
}

void cluster_members::device_gone(device_id id, const device_end& how) {
  coordinator_.mailboxes.close(id);
  auto device = coordinator_.devices.gone(id, how.cause);
  if (!device)
    return;
  coordinator_.metadata.erase(metadata_key::of(id));
  coordinator_.liveness.gone(id, device->handle);
  record_end(id, *device, how);
  coordinator_.clients.device_gone(id);
  coordinator_.access.gone(id);
  if (auto& mapped = coordinator_.options.communicators.neighbours; mapped && device->handle.memory)
    mapped->forget(*device->handle.memory);
  auto& communicators = coordinator_.communicators;
  if (device->communicators.empty() || !communicators.all_replace(device->communicators))
    coordinator_.copies.forget(id);
  else
    communicators.member_lost(id, device->communicators); // a spare may want them
  coordinator_.calls.devices.gone(id, make_error(errc::device_lost, fmt::format("{} died while it was asked: {}",
                                                                                text_of(device->metadata), how.cause)));
  coordinator_.ranks.device_lost(id, how.cause);
  coordinator_.drains.serve();
}

void cluster_members::store_device(const gpu_sim::DeviceMetadata& metadata, node_id node) {
  proto::StoredDevice stored;
  *stored.mutable_metadata() = metadata;
  stored.set_node_id(node.value);
  coordinator_.metadata.put(metadata_key::of(id_of(metadata)), stored);
}

void cluster_members::note_missing(node_id id, const proto::StoredNode& node) {
  const std::string cause = "it did not come back after the coordinator's restart";
  coordinator_.metadata.erase(metadata_key::of(id));
  proto::Record record;
  record.mutable_node_left()->set_node_id(id.value);
  record.mutable_node_left()->set_name(node.about().name());
  record.mutable_node_left()->set_cause(cause);
  record.mutable_node_left()->set_lost(true);
  coordinator_.journal(std::move(record));
  proto::ClusterInfo::Gone gone;
  gone.set_what(proto::ClusterInfo::Gone::NODE);
  gone.set_id(id.value);
  gone.set_name(node.about().name());
  gone.set_cause(cause);
  note_departure(std::move(gone));
}

void cluster_members::note_missing(device_id id, const proto::StoredDevice& device) {
  coordinator_.metadata.erase(metadata_key::of(id));
  coordinator_.devices.gone(id, "it was lost while the coordinator was away");
  record_end(id, {device.metadata(), {}, node_id{device.node_id()}, {}},
             {"it was lost while the coordinator was away", "coordinator", coordinator_.now_ns()});
}

void cluster_members::member_lost(const proto::MemberLost& x) {
  device_end how{x.cause(), x.noticed_by(), x.noticed_ns()};
  how.lives = x.lives();
  if (x.has_suspicion())
    how.suspicion = x.suspicion();
  if (x.fence())
    fence(device_id{x.device_id()}, how);
  else
    device_gone(device_id{x.device_id()}, how); // unless the coordinator's own monitor was faster
}

caf::result<proto::ProbeResponse> cluster_members::probe(const proto::ProbeRequest& x) {
  auto promise = coordinator_.self->make_response_promise<proto::ProbeResponse>();
  probe_by_others(coordinator_, x.node(), [promise](bool lives) mutable {
    proto::ProbeResponse answer;
    answer.set_lives(lives);
    promise.deliver(std::move(answer));
  });
  return promise;
}

void cluster_members::fence(device_id id, const device_end& how) {
  auto device = coordinator_.devices.find(id);
  if (device == nullptr)
    return;
  auto handle = device->handle;
  auto all = device->communicators; // a hung device sends no down message: each gets MemberLost
  coordinator_.silences.note(device->node, how.noticed_ns != 0 ? how.noticed_ns : coordinator_.now_ns());
  device_gone(id, how);
  ensure(coordinator_.devices.find(id) == nullptr, "a device that was ended is in the cluster no more");
  proto::MemberLost lost;
  lost.set_device_id(id.value);
  lost.set_cause(how.cause);
  lost.set_noticed_by(how.noticed_by);
  lost.set_lives(how.lives);
  if (how.suspicion)
    *lost.mutable_suspicion() = *how.suspicion;
  for (auto number : all)
    if (auto communicator = coordinator_.communicator_of(number))
      coordinator_.self->send(*communicator, lost);
  const auto* prefix = how.noticed_by == "memory" ? "" : "ended on suspicion: ";
  coordinator_.self->send_exit(caf::actor_cast<caf::actor>(handle.device),
                               make_error(errc::suspected, prefix + how.cause));
}

std::string cluster_members::name_of(node_id id) const {
  auto name = coordinator_.devices.name_of(id);
  return name.empty() ? departures_.name_of(id) : name; // a node may be known to be gone before its devices are
}

void cluster_members::note_departure(proto::ClusterInfo::Gone x) {
  departures_.add(std::move(x), coordinator_.now_ns());
}

namespace {

/// A node takes a round trip, and then the answer to the client takes another.
constexpr auto node_limit = std::chrono::milliseconds{40}, watch_limit = std::chrono::milliseconds{20};

} // namespace

void node_silences::find(node_id id, const std::function<void(uint64_t silent_ns)>& then) {
  auto& nodes = coordinator_.devices.nodes();
  auto known = nodes.find(id);
  auto node = known == nodes.end() ? node_actor{} : caf::actor_cast<node_actor>(known->second.handle);
  if (!node)
    return then(0);
  auto asked_ns = coordinator_.now_ns();
  coordinator_.self->request(node, node_limit, proto::AliveRequest{})
    .then([then](const proto::AliveResponse&) { then(0); },
          [this, id, asked_ns, then](const caf::error& problem) {
            auto still = coordinator_.devices.nodes().find(id);
            if (problem != caf::sec::request_timeout || still == coordinator_.devices.nodes().end())
              return then(0);
            note(id, asked_ns);
            ensure(since_.contains(id), "a node that was found silent is noted");
            const auto now = coordinator_.now_ns();
            auto silent_ns = std::max(now, since_.at(id)) - since_.at(id);
            if (!coordinator_.options.silence_watch)
              return then(silent_ns);
            // It may have been silent before it was asked: the heartbeats of its process show that.
            coordinator_.self->request(coordinator_.options.silence_watch, watch_limit, still->second.handle->node())
              .then([then, silent_ns](uint64_t since_word) { then(std::max(silent_ns, since_word)); },
                    [then, silent_ns](const caf::error&) { then(silent_ns); });
          });
}

void node_silences::note(node_id id, uint64_t since_ns) {
  auto node = coordinator_.devices.nodes().find(id);
  if (node == coordinator_.devices.nodes().end() || !since_.try_emplace(id, since_ns).second)
    return; // or its answer is awaited already
  auto answered = [this, id] { since_.erase(id); };
  coordinator_.self->request(caf::actor_cast<node_actor>(node->second.handle), caf::infinite, proto::AliveRequest{})
    .then([answered](const proto::AliveResponse&) { answered(); }, [answered](const caf::error&) { answered(); });
}

void node_silences::explain(node_id id, const caf::error& problem, const std::function<void(const caf::error&)>& then) {
  find(id, [problem, then](uint64_t silent_ns) {
    if (silent_ns == 0)
      return then(problem);
    then(make_error(code_of(problem), fmt::format("{}; its process has been silent for {}: it is busy, stopped or "
                                                  "unreachable",
                                                  render(problem), duration_text(silent_ns))));
  });
}

} // namespace ringmaster
