// The COORDINATOR lets nodes end without a loss: their ranks leave first.
#include "actors/calls/request_limit.hpp"
#include "actors/coordination/coordinator_requests.hpp"
#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <caf/send.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <spdlog/spdlog.h>

namespace ringmaster {

caf::expected<node_id> coordinator_state::node_to_drain(const std::string& name_of_it) const {
  std::vector<std::string> names;
  for (auto& [id, node] : devices.nodes()) {
    names.push_back(node.about.name());
    if (node.about.name() != name_of_it)
      continue;
    if (node.handle->node() == self->node() && !options.own_nodes_may_end)
      return make_error(errc::refused,
                        fmt::format("node {} lives in the coordinator's own process, and ends with it", name_of_it));
    if (node.about.plays_rank())
      return make_error(
        errc::refused, fmt::format("node {} is a program that is a rank: it leaves when the program does", name_of_it));
    return id;
  }
  std::sort(names.begin(), names.end());
  return make_error(errc::refused, names.empty() ? fmt::format("there is no node \"{}\", and no other one", name_of_it)
                                                 : fmt::format("there is no node \"{}\"; there are {}", name_of_it,
                                                               fmt::join(names, ", ")));
}

caf::result<proto::DrainResponse> coordinator_state::drain(const proto::DrainRequest& x) {
  auto promise = self->make_response_promise<proto::DrainResponse>();
  auto problem = check_waiting();
  auto node = problem ? caf::expected<node_id>{problem} : node_to_drain(x.node());
  if (!node) {
    promise.deliver(refusal<proto::DrainResponse>(node.error()));
    return promise;
  }
  auto number = ++waits_;
  auto limit = request_limit(x.timeout_ns());
  drain_calls_[number] = {calling_peer, *node, limit, promise};
  spdlog::info("node {} is drained: its devices leave their communicators", devices.place_of(*node));
  drains_.begin(*node, number);
  self->delayed_send(self, limit, atom::expire_v, number);
  serve_drains();
  return promise;
}

void coordinator_state::serve_drains() {
  for (auto node : drains_.nodes()) {
    auto step = drains_.next(node);
    for (auto& [communicator, members] : step.ask)
      let_leave(node, communicator, members);
    if (step.end_node)
      self->send(caf::actor_cast<node_actor>(devices.nodes().at(node).handle), proto::NodeDrained{});
  }
}

void coordinator_state::let_leave(node_id node, communicator_id communicator, const device_ids& members) {
  proto::LeaveRequest request;
  request.set_reason(fmt::format("{} is drained", devices.place_of(node)));
  for (auto id : members)
    request.add_device_ids(id.value);
  caf::timespan limit{0};
  for (auto& [number, call] : drain_calls_)
    if (call.node == node)
      limit = std::max(limit, call.limit);
  limit += options.request_limit; // the callers' own comes first
  auto answered = [this, node, communicator, members](epoch_number epoch, const caf::error& problem) {
    drains_.answered(node, communicator, members, epoch, problem);
    if (!problem)
      serve_spares(); // and drains
  };
  ask_communicator_then<proto::LeaveResponse>(
    *this, communicator, request, limit,
    [answered](const proto::LeaveResponse& y) { answered(epoch_number{y.epoch()}, error_in(y)); },
    [answered](const caf::error& problem) { answered({}, problem); });
}

/// Those that have not left yet.
void coordinator_state::cancel_drain(node_id node) {
  proto::LeaveRequest request; // without a reason
  std::set<communicator_id> asked;
  for (auto& [id, device] : devices.devices())
    if (device.node == node) {
      request.add_device_ids(id.value);
      asked.insert(device.communicators.begin(), device.communicators.end());
    }
  for (auto id : asked)
    if (auto communicator = communicator_of(id))
      caf::anon_send(*communicator, request);
}

void coordinator_state::drain_expired(uint64_t number) {
  auto call = drain_calls_.extract(number);
  auto waited = drains_.expired(number);
  if (!call || !waited)
    return;
  if (auto left = drains_.nodes(); std::find(left.begin(), left.end(), call.mapped().node) == left.end())
    cancel_drain(call.mapped().node);
  auto problem = make_error(errc::timed_out,
                            fmt::format("node {} was not drained within {}: {}", devices.name_of(call.mapped().node),
                                        duration_text(call.mapped().limit), *waited));
  say_silence(call.mapped().node, problem, refuse_by(call.mapped().promise));
}

std::string coordinator_state::cause_of_end(node_id node, const caf::error& reason) const {
  return reason == caf::exit_reason::user_shutdown && drains_.is_given(node) ? "it was drained" : render(reason);
}

void coordinator_state::node_drained(node_id node, const std::string& place, const caf::error& reason) {
  auto ended = drains_.gone(node);
  if (!ended)
    return;
  auto answer = verdict<proto::DrainResponse>(
    ended->told
      ? caf::error{}
      : make_error(errc::device_lost, fmt::format("{} was lost before it was drained: {}", place, render(reason))));
  for (auto& line : ended->done)
    answer.add_done(line);
  for (auto number : ended->to)
    if (auto call = drain_calls_.extract(number))
      call.mapped().promise.deliver(answer);
}

} // namespace ringmaster
