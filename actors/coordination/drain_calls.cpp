#include "actors/coordination/drain_calls.hpp"

#include "actors/calls/request_limit.hpp"
#include "actors/coordination/coordinator_requests.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/logging/log.hpp"
#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <caf/send.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace ringmaster {

drain_calls::drain_calls(coordinator_state& coordinator)
  : coordinator_(coordinator), desk_(coordinator.devices, coordinator.communicators) {}

caf::expected<node_id> drain_calls::node_of(const std::string& name) const {
  std::vector<std::string> names;
  for (auto& [id, node] : coordinator_.devices.nodes()) {
    names.push_back(node.about.name());
    if (node.about.name() != name)
      continue;
    if (node.handle->node() == coordinator_.self->node() && !coordinator_.options.own_nodes_may_end)
      return make_error(errc::refused,
                        fmt::format("node {} runs in the coordinator's process, and exits with it", name));
    if (node.about.plays_rank())
      return make_error(errc::refused,
                        fmt::format("node {} is a program that is a rank: it leaves when the program does", name));
    return id;
  }
  std::sort(names.begin(), names.end());
  return make_error(errc::refused,
                    names.empty() ? fmt::format("there is no node \"{}\", and no other one", name)
                                  : fmt::format("there is no node \"{}\"; there are {}", name, fmt::join(names, ", ")));
}

caf::result<proto::DrainResponse> drain_calls::drain(const proto::DrainRequest& x) {
  auto promise = coordinator_.self->make_response_promise<proto::DrainResponse>();
  auto problem = coordinator_.check_waiting();
  auto node = problem ? caf::expected<node_id>{problem} : node_of(x.node());
  if (!node) {
    promise.deliver(refusal<proto::DrainResponse>(node.error()));
    return promise;
  }
  auto number = coordinator_.next_number();
  auto limit = request_limit(x.timeout_ns());
  calls_[number] = {coordinator_.calling_peer, *node, limit, promise};
  log_info({.node = coordinator_.devices.name_of(*node)}, "node {} is drained: its devices leave their communicators",
           coordinator_.devices.place_of(*node));
  desk_.begin(*node, number);
  coordinator_.self->delayed_send(coordinator_.self, limit, atom::expire_v, number);
  serve();
  return promise;
}

void drain_calls::serve() {
  for (auto node : desk_.nodes()) {
    auto step = desk_.next(node);
    ensure(step.ask.empty() || !step.end_node, "a node exits when no communicator has its devices");
    for (auto& [communicator, members] : step.ask)
      let_leave(node, communicator, members);
    if (step.end_node)
      coordinator_.self->send(caf::actor_cast<node_actor>(coordinator_.devices.nodes().at(node).handle),
                              proto::NodeDrained{});
  }
}

void drain_calls::let_leave(node_id node, communicator_id communicator, const device_ids& members) {
  proto::LeaveRequest request;
  request.set_reason(fmt::format("{} is drained", coordinator_.devices.place_of(node)));
  for (auto id : members)
    request.add_device_ids(id.value);
  caf::timespan limit{0};
  for (auto& [number, call] : calls_)
    if (call.node == node)
      limit = std::max(limit, call.limit);
  limit += coordinator_.options.request_limit; // the callers' own limit passes first
  auto answered = [this, node, communicator, members](epoch_number epoch, const caf::error& problem) {
    desk_.answered(node, communicator, members, epoch, problem);
    if (!problem)
      coordinator_.devices_freed();
  };
  ask_communicator_then<proto::LeaveResponse>(
    coordinator_, communicator, request, limit,
    [answered](const proto::LeaveResponse& y) { answered(epoch_number{y.epoch()}, error_in(y)); },
    [answered](const caf::error& problem) { answered({}, problem); });
}

void drain_calls::cancel(node_id node) {
  proto::LeaveRequest request; // without a reason: it cancels
  std::set<communicator_id> asked;
  for (auto& [id, device] : coordinator_.devices.devices())
    if (device.node == node) {
      request.add_device_ids(id.value);
      asked.insert(device.communicators.begin(), device.communicators.end());
    }
  for (auto id : asked)
    if (auto communicator = coordinator_.communicator_of(id))
      caf::anon_send(*communicator, request);
}

bool drain_calls::expire(uint64_t number) {
  auto call = calls_.extract(number);
  if (!call)
    return false;
  const auto node = call.mapped().node;
  auto waited = desk_.expired(number);
  ensure(waited.has_value(), "a request to drain a node that waits is on the desk");
  if (std::ranges::count(desk_.nodes(), node) == 0)
    cancel(node);
  auto problem = make_error(errc::timed_out,
                            fmt::format("node {} was not drained within {}: {}", coordinator_.devices.name_of(node),
                                        duration_text(call.mapped().limit), *waited));
  coordinator_.silences.explain(node, problem, refuse_by(call.mapped().promise));
  return true;
}

std::string drain_calls::cause_of_end(node_id node, const caf::error& reason) const {
  return reason == caf::exit_reason::user_shutdown && desk_.is_given(node) ? "it was drained" : render(reason);
}

void drain_calls::node_gone(node_id node, const std::string& place, const caf::error& reason) {
  auto ended = desk_.gone(node);
  if (!ended)
    return;
  auto answer = verdict<proto::DrainResponse>(
    ended->asked_to_exit
      ? caf::error{}
      : make_error(errc::device_lost, fmt::format("{} was lost before it was drained: {}", place, render(reason))));
  for (auto& line : ended->done)
    answer.add_done(line);
  for (auto number : ended->to)
    if (auto call = calls_.extract(number))
      call.mapped().promise.deliver(answer);
}

size_t drain_calls::waiting_of(const request_peer& peer) const {
  return static_cast<size_t>(std::ranges::count_if(calls_, [&](auto& x) { return x.second.peer == peer; }));
}

} // namespace ringmaster
