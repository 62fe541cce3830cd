#include "actors/coordination/info_calls.hpp"

#include "actors/calls/request_limit.hpp"
#include "actors/coordination/coordinator_requests.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster {

template <class Answer>
void gathering<Answer>::reported() {
  ensure(waiting > 0, "each part of an answer is reported once");
  if (--waiting == 0)
    promise.deliver(std::move(answer));
}

namespace {

/// Communicators are in this process and answer from memory.
constexpr auto communicator_limit = std::chrono::milliseconds{60};

/// What the communicator reports about itself.
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

void describe(proto::ClusterInfo::Node& to, node_id id, const known_node& x) {
  to.set_node_id(id.value);
  to.set_name(x.about.name());
  to.set_pid(x.about.pid());
  to.set_devices_announced(x.about.devices());
  to.set_host(x.about.host());
  to.set_port(x.about.port());
  to.set_hostname(x.about.hostname());
  to.set_joined_ns(x.joined_ns);
  to.set_draining(x.draining);
  for (auto& [peer, why] : x.apart) {
    auto& entry = *to.add_apart();
    entry.set_peer(peer);
    entry.set_why(why);
  }
}

/// What the coordinator knows of a communicator by itself, except its members.
template <class About>
void describe(About& about, communicator_id id, const known_communicator& known) {
  about.set_comm_id(id.value);
  about.set_policy(known.policy);
  about.set_deterministic(known.deterministic);
  about.set_outlives_client(known.outlives_client);
  about.set_name(known.name);
}

} // namespace

proto::ClusterInfo info_calls::free_info(uint32_t devices_max) const {
  proto::ClusterInfo result;
  result.set_route(coordinator_.options.route);
  for (auto& [id, device] : coordinator_.devices.devices()) {
    if (static_cast<uint32_t>(result.devices_size()) == devices_max)
      break;
    if (coordinator_.devices.is_free(device))
      describe(*result.add_devices(), device);
  }
  return result;
}

proto::ClusterInfo info_calls::info() const {
  proto::ClusterInfo result;
  auto& options = coordinator_.options;
  result.set_route(options.route);
  result.set_insecure(options.insecure);
  result.set_encryption(options.encryption);
  if (options.records)
    if (const auto trouble = options.records->trouble())
      result.set_journal_trouble(render(trouble));
  if (auto& trouble = coordinator_.metadata.trouble())
    result.set_journal_trouble(result.journal_trouble() + (result.journal_trouble().empty() ? "" : "; ")
                               + render(trouble));
  for (auto& [id, device] : coordinator_.devices.devices())
    describe(*result.add_devices(), device);
  for (auto& [id, node] : coordinator_.devices.nodes())
    describe(*result.add_nodes(), id, node);
  return result;
}

caf::result<proto::ClusterInfo> info_calls::cluster_info(const proto::ClusterInfoRequest& x) {
  auto promise = coordinator_.self->make_response_promise<proto::ClusterInfo>();
  if (coordinator_.devices.devices().size() >= x.min_devices() || x.timeout_ns() == 0) {
    deliver(x, coordinator_.access.caller(), promise);
    return promise;
  }
  if (auto problem = coordinator_.check_waiting()) {
    promise.deliver(std::move(problem));
    return promise;
  }
  auto number = coordinator_.next_number();
  waiters_[number] = {coordinator_.calling_peer, x, coordinator_.access.caller(), promise};
  coordinator_.self->delayed_send(coordinator_.self, request_limit(x.timeout_ns()), atom::expire_v, number);
  return promise;
}

void info_calls::serve() {
  std::erase_if(waiters_, [this](auto& entry) {
    if (coordinator_.devices.devices().size() < entry.second.request.min_devices())
      return false;
    deliver(entry.second.request, entry.second.caller, entry.second.promise);
    return true;
  });
}

bool info_calls::expire(uint64_t number) {
  auto found = waiters_.extract(number);
  if (!found)
    return false;
  deliver(found.mapped().request, found.mapped().caller, found.mapped().promise);
  return true;
}

size_t info_calls::waiting_of(const request_peer& peer) const {
  return static_cast<size_t>(std::ranges::count_if(waiters_, [&](auto& x) { return x.second.peer == peer; }));
}

void info_calls::deliver(const proto::ClusterInfoRequest& x, const calling_process& caller,
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
  if (!caller.is_confined())
    coordinator_.members.departures().write_to(all->answer);
  for (auto& [id, known] : coordinator_.communicators.alive())
    if (coordinator_.access.may_use(caller, id))
      add_communicator(id, known, all);
  all->reported();
}

void info_calls::add_communicator(communicator_id id, const known_communicator& known,
                                  const std::shared_ptr<gathering<proto::ClusterInfo>>& all) {
  auto index = all->answer.communicators_size();
  auto& about = *all->answer.add_communicators();
  describe(about, id, known);
  for (auto member : coordinator_.devices.members_of(id))
    about.add_device_ids(member.value);
  ++all->waiting;
  gpu_sim::GetCommStatusRequest request;
  request.set_commid(id.value);
  request.set_readonly(true);
  ask_communicator_then<gpu_sim::GetCommStatusResponse>(
    coordinator_, id, request, coordinator_.options.request_limit,
    [all, index](const gpu_sim::GetCommStatusResponse& y) {
      take_status(*all->answer.mutable_communicators(index), y);
      all->reported();
    },
    [all, index](const caf::error& problem) {
      all->answer.mutable_communicators(index)->set_silent(render(problem));
      all->reported();
    });
}

void info_calls::add_status(communicator_id id, const known_communicator& known, const status_gathering& all) {
  auto index = all->answer.communicators_size();
  auto& about = *all->answer.add_communicators();
  describe(about, id, known);
  for (auto member : coordinator_.devices.members_of(id))
    about.add_ranks()->set_device_id(member.value);
  auto now = all->answer.time_ns();
  about.set_operations_met(known.operations_met);
  if (known.operations_met > 0)
    about.set_met_quiet_ns(std::max(now, known.met_ended_ns + 1) - known.met_ended_ns);
  ++all->waiting;
  ask_communicator_then<proto::CommunicatorStatus>(
    coordinator_, id, proto::CommunicatorStatusRequest{}, communicator_limit,
    [all, index](proto::CommunicatorStatus& x) {
      auto& known_here = *all->answer.mutable_communicators(index);
      x.set_outlives_client(known_here.outlives_client()); // the communicator does not know these four
      x.set_name(known_here.name());
      x.set_operations_met(known_here.operations_met());
      x.set_met_quiet_ns(known_here.met_quiet_ns());
      known_here = std::move(x);
      all->reported();
    },
    [all, index](const caf::error& problem) {
      all->answer.mutable_communicators(index)->set_silent(render(problem));
      all->reported();
    });
}

caf::result<proto::ClusterStatus> info_calls::cluster_status() {
  auto all = std::make_shared<gathering<proto::ClusterStatus>>();
  all->promise = coordinator_.self->make_response_promise<proto::ClusterStatus>();
  auto promise = all->promise;
  all->answer.set_time_ns(coordinator_.now_ns());
  *all->answer.mutable_cluster() = info();
  const auto& caller = coordinator_.access.caller();
  if (!caller.is_confined())
    coordinator_.members.departures().write_to(*all->answer.mutable_cluster());
  for (auto& [id, known] : coordinator_.communicators.alive())
    if (coordinator_.access.may_use(caller, id))
      add_status(id, known, all);
  int index = 0; // in the order of `info`
  for (auto& [id, known] : coordinator_.devices.nodes()) {
    ++all->waiting;
    coordinator_.silences.find(id, [all, index](uint64_t silent_ns) {
      if (silent_ns > 0)
        all->answer.mutable_cluster()->mutable_nodes(index)->set_silent_ns(silent_ns);
      all->reported();
    });
    ++index;
  }
  ensure(index == all->answer.cluster().nodes_size(), "each node of the cluster has an entry");
  all->reported();
  return promise;
}

} // namespace ringmaster
