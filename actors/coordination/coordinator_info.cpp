// The COORDINATOR tells who is there, how each communicator is, and what is gone.
#include "actors/calls/request_limit.hpp"
#include "actors/coordination/coordinator.hpp"
#include "actors/coordination/coordinator_requests.hpp"
#include "actors/coordination/gathering.hpp"

namespace ringmaster {

namespace {

/// What the communicator says of itself.
void take_status(proto::ClusterInfo::Communicator& x, const gpu_sim::GetCommStatusResponse& status) {
  x.set_epoch(status.epoch());
  x.clear_device_ids();
  for (auto& device : status.devices())
    x.add_device_ids(device.deviceid().value());
  x.set_operations_in_flight(status.operationsinflight());
  x.set_status(status.status());
  x.set_error(status.error());
  x.set_async_error(status.asyncerror());
  x.set_ended(status.ended());
}

void describe(proto::ClusterInfo::Device& to, const known_device& x) {
  *to.mutable_metadata() = x.metadata;
  to.set_node_id(x.node.value);
  for (auto communicator : x.communicators)
    to.add_comm_ids(communicator.value);
}

} // namespace

proto::ClusterInfo coordinator_state::free_info(uint32_t devices_max) const {
  proto::ClusterInfo result;
  result.set_route(options.route);
  for (auto& [id, device] : devices.devices()) {
    if (static_cast<uint32_t>(result.devices_size()) == devices_max)
      break;
    if (devices.is_free(device))
      describe(*result.add_devices(), device);
  }
  return result;
}

proto::ClusterInfo coordinator_state::info() const {
  proto::ClusterInfo result;
  result.set_route(options.route);
  if (options.records)
    if (const auto trouble = options.records->trouble())
      result.set_journal_trouble(render(trouble));
  for (auto& [id, device] : devices.devices())
    describe(*result.add_devices(), device);
  for (auto& [id, node] : devices.nodes()) {
    auto& entry = *result.add_nodes();
    entry.set_node_id(id.value);
    entry.set_name(node.about.name());
    entry.set_pid(node.about.pid());
    entry.set_devices_announced(node.about.devices());
    entry.set_host(node.about.host());
    entry.set_port(node.about.port());
    entry.set_hostname(node.about.hostname());
    entry.set_joined_ns(node.joined_ns);
    entry.set_draining(node.draining);
    for (auto& [peer, why] : node.apart) {
      auto& apart = *entry.add_apart();
      apart.set_peer(peer);
      apart.set_why(why);
    }
  }
  return result;
}

caf::result<proto::ClusterInfo> coordinator_state::wait_for_devices(const proto::ClusterInfoRequest& x) {
  auto promise = self->make_response_promise<proto::ClusterInfo>();
  if (devices.devices().size() >= x.min_devices() || x.timeout_ns() == 0) {
    deliver_info(x, promise);
    return promise;
  }
  if (auto problem = check_waiting()) {
    promise.deliver(std::move(problem));
    return promise;
  }
  auto number = ++waits_;
  info_waiters_[number] = {calling_peer, x, promise};
  self->delayed_send(self, request_limit(x.timeout_ns()), atom::expire_v, number);
  return promise;
}

void coordinator_state::serve_info_waiters() {
  std::erase_if(info_waiters_, [this](auto& entry) {
    if (devices.devices().size() < entry.second.request.min_devices())
      return false;
    deliver_info(entry.second.request, entry.second.promise);
    return true;
  });
}

void coordinator_state::deliver_info(const proto::ClusterInfoRequest& x,
                                     caf::typed_response_promise<proto::ClusterInfo> promise) {
  if (x.free_max() != 0) {
    promise.deliver(free_info(x.free_max()));
    return;
  }
  if (!x.communicators()) {
    promise.deliver(info());
    return;
  }
  auto all = std::make_shared<gathering<proto::ClusterInfo>>();
  all->answer = info();
  all->promise = std::move(promise);
  for (auto& gone : latest_gone_)
    *all->answer.add_gone() = gone;
  for (auto& [id, known] : communicators.alive()) {
    auto index = all->answer.communicators_size();
    auto& about = *all->answer.add_communicators();
    describe(about, id, known);
    for (auto member : devices.members_of(id))
      about.add_device_ids(member.value);
    ++all->waiting;
    gpu_sim::GetCommStatusRequest request;
    request.set_commid(id.value);
    request.set_readonly(true);
    auto silent = [all, index](const caf::error& problem) {
      all->answer.mutable_communicators(index)->set_silent(render(problem));
      all->told();
    };
    ask_communicator_then<gpu_sim::GetCommStatusResponse>(
      *this, id, request, options.request_limit,
      [all, index](const gpu_sim::GetCommStatusResponse& y) {
        take_status(*all->answer.mutable_communicators(index), y);
        all->told();
      },
      silent);
  }
  all->told();
}

std::string coordinator_state::name_of_node(node_id id) const {
  if (auto name_of_it = devices.name_of(id); !name_of_it.empty())
    return name_of_it;
  for (auto& x : latest_gone_) // it may be known to be gone before its devices are
    if (x.what() == proto::ClusterInfo::Gone::NODE && x.id() == id.value)
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

} // namespace ringmaster
