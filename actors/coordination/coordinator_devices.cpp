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

proto::NodeJoinResponse coordinator_state::node_joined(const proto::NodeJoinRequest& x,
                                                       const caf::strong_actor_ptr& node) {
  auto about = x;
  auto taken = [&] {
    return std::any_of(nodes.begin(), nodes.end(), [&](auto& y) { return y.second.about.name() == about.name(); });
  };
  for (int next = 2; taken(); ++next) // a name is one node's
    about.set_name(fmt::format("{}-{}", x.name(), next));
  auto id = ++node_ids_;
  nodes[id] = {about, node};
  self->monitor(caf::actor_cast<caf::actor>(node));
  proto::Record record;
  record.mutable_node_joined()->set_node_id(id);
  record.mutable_node_joined()->set_name(about.name());
  record.mutable_node_joined()->set_pid(x.pid());
  record.mutable_node_joined()->set_host(x.hostname());
  journal(std::move(record));
  proto::NodeJoinResponse answer;
  answer.set_node_id(id);
  answer.set_name(about.name());
  return answer;
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
  if (auto node = nodes.find(x.node_id()); node != nodes.end())
    record.mutable_device_joined()->set_node_name(node->second.about.name());
  spdlog::debug("device 0x{:x} of node {} joined", id, record.device_joined().node_name());
  journal(std::move(record));
  for (auto i = waiters_.begin(); i != waiters_.end();)
    if (devices.size() >= i->second.request.min_devices()) {
      deliver_info(i->second.request, i->second.promise);
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
      proto::ClusterInfo::Gone gone;
      gone.set_what(proto::ClusterInfo::Gone::NODE);
      gone.set_id(id);
      gone.set_name(node.about.name());
      gone.set_cause(render(x.reason));
      gone.set_left(left);
      note_gone(std::move(gone));
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
  if (auto client = clients_.extract(x.source))
    client_gone(client.mapped(), x.reason ? render(x.reason) : "it has ended");
}

std::string coordinator_state::node_name(uint64_t id) const {
  if (auto node = nodes.find(id); node != nodes.end())
    return node->second.about.name();
  for (auto& x : latest_gone_) // it may be known to be gone before its devices are
    if (x.what() == proto::ClusterInfo::Gone::NODE && x.id() == id)
      return x.name();
  return {};
}

void coordinator_state::note_gone(proto::ClusterInfo::Gone x) {
  constexpr size_t gone_max = 64;
  x.set_time_ns(now_ns());
  latest_gone_.push_back(std::move(x));
  if (latest_gone_.size() > gone_max)
    latest_gone_.pop_front();
}

void coordinator_state::communicator_ended(uint64_t id, const std::string& reason) {
  auto entry = communicators.find(id);
  if (entry == communicators.end())
    return;
  if (!reason.empty()) {
    spdlog::error("communicator {} has failed: {}", id, reason);
    failed_[id] = reason;
    proto::ClusterInfo::Gone gone;
    gone.set_what(proto::ClusterInfo::Gone::COMMUNICATOR);
    gone.set_id(id);
    gone.set_cause(reason);
    note_gone(std::move(gone));
  }
  owned_.ended(communicator_id{id});
  forget_idle_clients();
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
  proto::ClusterInfo::Gone gone;
  gone.set_what(proto::ClusterInfo::Gone::DEVICE);
  gone.set_id(id);
  gone.set_cause(cause);
  gone.set_left(noticed_by.empty());
  gone.set_name(node_name(i->second.node));
  gone.mutable_comm_ids()->Add(i->second.communicators.begin(), i->second.communicators.end());
  note_gone(std::move(gone));
  owned_.gone(device_id{id});
  forget_idle_clients();
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
    entry.set_host(node.about.host());
    entry.set_port(node.about.port());
    entry.set_hostname(node.about.hostname());
  }
  return result;
}

caf::result<proto::ClusterInfo> coordinator_state::wait_for_devices(const proto::ClusterInfoRequest& x) {
  auto promise = self->make_response_promise<proto::ClusterInfo>();
  if (devices.size() >= x.min_devices() || x.timeout_ns() == 0) {
    deliver_info(x, promise);
    return promise;
  }
  auto number = ++waits_;
  waiters_[number] = {x, promise};
  self->delayed_send(self, request_limit(x.timeout_ns()), atom::expire_v, number);
  return promise;
}

void coordinator_state::expire(uint64_t waiter) {
  search_expired(waiter);
  auto i = waiters_.find(waiter);
  if (i == waiters_.end())
    return;
  deliver_info(i->second.request, i->second.promise);
  waiters_.erase(i);
}

void coordinator_state::deliver_info(const proto::ClusterInfoRequest& x,
                                     caf::typed_response_promise<proto::ClusterInfo> promise) {
  if (!x.communicators()) {
    promise.deliver(info());
    return;
  }
  auto answer = std::make_shared<proto::ClusterInfo>(info());
  for (auto& gone : latest_gone_)
    *answer->add_gone() = gone;
  auto waiting = std::make_shared<size_t>(communicators.size() + 1);
  auto told = [answer, waiting, promise]() mutable {
    if (--*waiting == 0)
      promise.deliver(std::move(*answer));
  };
  for (auto& [id, entry] : communicators) {
    auto index = answer->communicators_size();
    auto& about = *answer->add_communicators();
    about.set_comm_id(id);
    about.set_policy(entry.policy);
    about.set_deterministic(entry.deterministic);
    about.set_outlives_client(entry.outlives_client);
    for (auto& [number, device] : devices)
      if (device.communicators.count(id) != 0)
        about.add_device_ids(number);
    gpu_sim::GetCommStatusRequest request;
    request.set_commid(id);
    auto limit = options.request_limit;
    self->request(entry.handle, limit, std::move(request))
      .then([answer, index, told](const gpu_sim::GetCommStatusResponse& y) mutable {
              auto& known = *answer->mutable_communicators(index);
              known.set_epoch(y.epoch());
              known.clear_device_ids();
              for (auto& device : y.devices())
                known.add_device_ids(device.deviceid().value());
              known.set_operations_in_flight(y.operationsinflight());
              known.set_status(y.status());
              known.set_error(y.error());
              known.set_async_error(y.asyncerror());
              told();
            },
            [answer, index, told, limit](const caf::error& problem) mutable {
              answer->mutable_communicators(index)->set_silent(
                problem == caf::sec::request_timeout
                  ? fmt::format("it did not answer within {:.1f} s", std::chrono::duration<double>{limit}.count())
                  : render(problem));
              told();
            });
  }
  told();
}

} // namespace ringmaster
