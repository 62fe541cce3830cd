// The COORDINATOR's devices and nodes: how they come and how they go.
#include "actors/coordination/coordinator.hpp"

#include "actors/devices/device.hpp"
#include "actors/calls/request_limit.hpp"

#include <algorithm>
#include <caf/send.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace ringmaster {

void coordinator_state::start_ids_above(const proto::JournalState& known) {
  node_ids_ = known.node_id();
  device_ids_ = known.device_id();
  communicator_ids_ = known.comm_id();
}

uint64_t coordinator_state::node_joined(const proto::NodeJoinRequest& x, const caf::strong_actor_ptr& node) {
  auto id = ++node_ids_;
  nodes[id] = {x, node};
  self->monitor(caf::actor_cast<caf::actor>(node));
  proto::Record record;
  record.mutable_node_joined()->set_node_id(id);
  record.mutable_node_joined()->set_name(x.name());
  record.mutable_node_joined()->set_pid(x.pid());
  journal(std::move(record));
  introduce_nodes();
  return id;
}

void coordinator_state::introduce_nodes() {
  proto::NodePeers peers;
  for (auto& [id, node] : nodes)
    if (node.about.port() != 0) {
      auto& peer = *peers.add_peers();
      peer.set_name(node.about.name());
      peer.set_host(node.about.host());
      peer.set_port(node.about.port());
    }
  if (peers.peers_size() > 1)
    for (auto& [id, node] : nodes)
      self->send(caf::actor_cast<node_actor>(node.handle), peers);
}

uint64_t coordinator_state::give_device_id(const proto::DeviceJoinRequest& x) {
  auto taken = [&](uint64_t id) { return given_ids_.count(id) != 0; };
  auto id = x.wanted_id() != 0 && !taken(x.wanted_id()) ? x.wanted_id() : device_ids_ + 1;
  device_ids_ = std::max(device_ids_, id);
  given_ids_.insert(id);
  return id;
}

void coordinator_state::device_ready(const proto::DeviceReady& x, const device_handle& handle) {
  auto id = x.metadata().deviceid().value();
  devices[id] = {x.metadata(), handle, x.node_id(), {}, {}};
  given_ids_.insert(id); // one that chose its own
  device_ids_ = std::max(device_ids_, id);
  self->monitor(caf::actor_cast<caf::actor>(handle.device));
  proto::Record record;
  *record.mutable_device_joined()->mutable_metadata() = x.metadata();
  record.mutable_device_joined()->set_node_id(x.node_id());
  journal(std::move(record));
  spdlog::debug("device 0x{:x} of node {} joined", id, x.node_id());
  for (auto i = waiters_.begin(); i != waiters_.end();)
    if (devices.size() >= i->second.devices_min) {
      i->second.promise.deliver(info());
      i = waiters_.erase(i);
    } else {
      ++i;
    }
  serve_searches();
}

void coordinator_state::on_down(const caf::down_msg& x) {
  auto is_source = [&](const caf::strong_actor_ptr& ptr) { return ptr && ptr->address() == x.source; };
  bool left = !x.reason || x.reason == caf::exit_reason::user_shutdown;
  for (auto& [id, device] : devices)
    if (is_source(device.handle.device))
      return device_gone(id, render(x.reason), left ? "" : "monitor", now_ns()); // ends the loop: the map has changed
  for (auto& [id, node] : nodes)
    if (is_source(node.handle)) {
      proto::Record record;
      record.mutable_node_left()->set_node_id(id);
      record.mutable_node_left()->set_name(node.about.name());
      record.mutable_node_left()->set_cause(render(x.reason));
      journal(std::move(record));
      if (left)
        spdlog::debug("node {} has left: {}", node.about.name(), render(x.reason));
      else
        spdlog::info("node {} is lost: {}", node.about.name(), render(x.reason));
      nodes.erase(id);
      return;
    }
  for (auto& [id, entry] : communicators)
    if (entry.handle.address() == x.source)
      return communicator_ended(id, x.reason ? render(x.reason) : ""); // ends the loop: the map has changed
}

void coordinator_state::communicator_ended(uint64_t id, const std::string& reason) {
  auto entry = communicators.find(id);
  if (entry == communicators.end())
    return;
  if (!reason.empty()) {
    spdlog::error("communicator {} has failed: {}", id, reason);
    failed_[id] = reason;
  }
  proto::Quiesce stop;
  stop.set_comm_id(id);
  stop.set_epoch(UINT64_MAX);
  stop.set_forget(true);
  proto::Members nobody;
  nobody.set_comm_id(id);
  for (auto& [number, device] : devices) {
    if (device.communicators.erase(id) == 0 || reason.empty())
      continue;
    // Its commands would block the stream for ever. Nobody wants the answer.
    caf::anon_send(caf::actor_cast<stream_actor>(device.handle.stream), stop);
    caf::anon_send(caf::actor_cast<device_actor>(device.handle.device), membership::of(nobody, {}));
  }
  for (auto lost : std::vector{entry->second.lost})
    forget_lost(lost, id);
  communicators.erase(entry);
  serve_searches(); // its devices are free
}

void coordinator_state::device_gone(uint64_t id, const std::string& cause, const std::string& noticed_by,
                                    uint64_t noticed_ns) {
  constexpr size_t gone_max = 4096;
  auto i = devices.find(id);
  if (i == devices.end())
    return;
  proto::Record record;
  if (noticed_by.empty()) {
    record.mutable_device_left()->set_device_id(id);
    record.mutable_device_left()->set_cause(cause);
    spdlog::debug("device 0x{:x} has left: {}", id, cause);
  } else {
    record.mutable_device_died()->set_device_id(id);
    record.mutable_device_died()->set_cause(cause);
    record.mutable_device_died()->set_noticed_by(noticed_by);
    record.mutable_device_died()->set_noticed_ns(noticed_ns);
    spdlog::info("device 0x{:x} has died, noticed by {}: {}", id, noticed_by, cause);
  }
  journal(std::move(record));
  auto calls = std::move(i->second.calls);
  if (i->second.communicators.empty() || !may_replace(id))
    copies.forget(device_id{id});
  else
    for (auto number : i->second.communicators)
      communicators.at(number).lost.push_back(id); // a spare may want them
  devices.erase(i);
  gone_[id] = cause;
  if (gone_.size() > gone_max)
    gone_.erase(gone_.begin());
  for (auto& call : calls)
    call.second(fmt::format("device 0x{:x} died while it was asked: {}", id, cause));
}

void coordinator_state::member_lost(const proto::MemberLost& x) {
  if (devices.count(x.device_id()) == 0)
    return; // the coordinator's own monitor was faster
  if (x.fence())
    fence(x.device_id(), x.cause(), x.noticed_by(), x.noticed_ns());
  else
    device_gone(x.device_id(), x.cause(), x.noticed_by(), x.noticed_ns());
}

void coordinator_state::fence(uint64_t id, const std::string& cause, const std::string& noticed_by, uint64_t noticed_ns) {
  auto i = devices.find(id);
  if (i == devices.end())
    return;
  auto handle = i->second.handle;
  device_gone(id, cause, noticed_by, noticed_ns);
  self->send_exit(caf::actor_cast<caf::actor>(handle.device),
                  make_error(errc::device_lost, "ended on suspicion: " + cause));
}

proto::ClusterInfo coordinator_state::info() const {
  proto::ClusterInfo result;
  for (auto& [id, device] : devices) {
    auto& entry = *result.add_devices();
    *entry.mutable_metadata() = device.metadata;
    entry.set_node_id(device.node);
    for (auto number : device.communicators)
      entry.add_comm_ids(number);
  }
  for (auto& [id, node] : nodes) {
    auto& entry = *result.add_nodes();
    entry.set_node_id(id);
    entry.set_name(node.about.name());
    entry.set_pid(node.about.pid());
    entry.set_devices_announced(node.about.devices());
  }
  return result;
}

caf::result<proto::ClusterInfo> coordinator_state::wait_for_devices(const proto::ClusterInfoRequest& x) {
  if (devices.size() >= x.min_devices() || x.timeout_ns() == 0)
    return info();
  auto number = ++waits_;
  auto promise = self->make_response_promise<proto::ClusterInfo>();
  waiters_[number] = {x.min_devices(), promise};
  self->delayed_send(self, request_limit(x.timeout_ns()), atom::expire_v, number);
  return promise;
}

void coordinator_state::expire(uint64_t waiter) {
  search_expired(waiter);
  auto i = waiters_.find(waiter);
  if (i == waiters_.end())
    return;
  i->second.promise.deliver(info());
  waiters_.erase(i);
}

} // namespace ringmaster
