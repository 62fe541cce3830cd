#include "actors/coordination/cluster_recovery.hpp"

#include "actors/calls/answers.hpp"
#include "actors/coordination/coordinator.hpp"
#include "messages/received_handles.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/logging/log.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/text/version_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace ringmaster {

namespace {

constexpr caf::timespan recall_limit = std::chrono::seconds{1};

} // namespace

void cluster_recovery::start(cluster_metadata found) {
  found_ = std::move(found);
  if (!found_.has_members())
    return;
  for (auto& node : found_.nodes)
    missing_.insert(node.first);
  state_ = phase::awaiting_nodes;
  spdlog::info("incarnation {} of this cluster's coordinator: it had {} and {}, and waits {} for the nodes at most",
               found_.cluster.incarnation(), counted(found_.nodes.size(), "node"),
               counted(found_.communicators.size(), "communicator"), duration_text(coordinator_.options.rejoin_limit));
  nodes_limit_ = coordinator_.next_number();
  coordinator_.self->delayed_send(coordinator_.self, coordinator_.options.rejoin_limit, atom::expire_v, nodes_limit_);
  advance();
}

bool cluster_recovery::holds(const caf::mailbox_element& x) const {
  const auto& store = coordinator_.options.store;
  const auto& what = x.content();
  if (what.match_elements<caf::exit_msg>() || what.match_elements<atom::tick>()
      || what.match_elements<proto::StoreAnswer>())
    return false;
  if (what.match_elements<atom::expire, uint64_t>() && coordinator_.metadata.awaits(what.get_as<uint64_t>(1)))
    return false; // by which it learns that it was replaced
  if (store != nullptr && !store->holds())
    return true; // another coordinator may lead: this one judges, orders and answers nothing
  return !is_done() && !x.mid.is_response() && !is_awaited(x) && !what.match_elements<caf::down_msg>()
         && !what.match_elements<atom::expire, uint64_t>();
}

bool cluster_recovery::is_awaited(const caf::mailbox_element& x) {
  const auto& what = x.content();
  return what.match_elements<proto::GreetingRequest>()
         || what.match_elements<proto::NodeJoinRequest, caf::strong_actor_ptr, device_handles>();
}

caf::error cluster_recovery::check_newest(const proto::ClusterIdentity& theirs) const {
  auto& ours = coordinator_.options.identity;
  if (theirs.cluster_id() != ours.cluster_id() || theirs.incarnation() <= ours.incarnation())
    return caf::none;
  return make_error(errc::aborted,
                    fmt::format("a coordinator of incarnation {} serves this cluster now, and this one is "
                                "of incarnation {}: it ends",
                                theirs.incarnation(), ours.incarnation()));
}

proto::GreetingResponse cluster_recovery::greet(const proto::GreetingRequest& x) {
  proto::GreetingResponse answer;
  auto& ours = coordinator_.options.identity;
  *answer.mutable_cluster() = ours;
  if (!x.has_expected())
    return answer;
  auto problem = check_newest(x.expected());
  if (problem)
    coordinator_.self->quit(problem);
  else if (x.expected().cluster_id() != ours.cluster_id())
    problem = make_error(errc::refused, "the coordinator there serves another cluster than before");
  set_error_in(answer, problem);
  return answer;
}

// -- nodes --------------------------------------------------------------------------

caf::error cluster_recovery::check(const proto::NodeJoinRequest& x) const {
  const auto who = fmt::format("node {}", x.name());
  auto& ours = coordinator_.options.identity;
  if (x.cluster().cluster_id() != ours.cluster_id())
    return make_error(errc::refused, fmt::format("{} is of another cluster than this coordinator", who));
  if (auto problem = check_protocol(who, x.protocol(), "the coordinator"))
    return problem;
  if (!missing_.contains(node_id{x.node_id()}))
    return make_error(errc::refused,
                      fmt::format("{} counts as lost since the coordinator was restarted, and its devices "
                                  "with it: it may join as a new one",
                                  who));
  return caf::none;
}

caf::result<proto::NodeJoinResponse, caf::strong_actor_ptr> cluster_recovery::rejoin(
  const proto::NodeJoinRequest& x, const caf::strong_actor_ptr& node, const device_handles& devices) {
  auto problem = check_newest(x.cluster());
  if (problem)
    coordinator_.self->quit(problem);
  // One that was restarted twice in a moment is asked twice: the first time by a request to its predecessor.
  const auto known = coordinator_.devices.nodes().find(node_id{x.node_id()});
  const bool is_back = known != coordinator_.devices.nodes().end() && known->second.handle == node;
  if (!problem && !is_back)
    problem = check(x);
  if (!problem && (node == nullptr || devices.size() != static_cast<size_t>(x.living_size())))
    problem = make_error(errc::device_lost, fmt::format("node {} has ended", x.name()));
  if (problem)
    return {refusal<proto::NodeJoinResponse>(problem), caf::strong_actor_ptr{}};
  if (!is_back)
    register_node(x, node, devices);
  auto promise = coordinator_.self->make_response_promise<proto::NodeJoinResponse, caf::strong_actor_ptr>();
  promise.deliver(coordinator_.members.welcome(x, node_id{x.node_id()}),
                  caf::actor_cast<caf::strong_actor_ptr>(coordinator_.options.journal));
  missing_.erase(node_id{x.node_id()});
  advance();
  return promise;
}

void cluster_recovery::register_node(const proto::NodeJoinRequest& x, const caf::strong_actor_ptr& node,
                                     const device_handles& devices) {
  const node_id id{x.node_id()};
  auto about = x;
  about.clear_living();
  about.clear_cluster();
  coordinator_.access.joined(id);
  coordinator_.devices.node_rejoined(id, about, node, found_.nodes.at(id).joined_ns());
  coordinator_.self->monitor(caf::actor_cast<caf::actor>(node));
  if (node->node() != coordinator_.self->node())
    coordinator_.devices.tell_places();
  for (int i = 0; i < x.living_size(); ++i) {
    const auto device = id_of(x.living(i).metadata());
    if (!found_.devices.contains(device)) // it joined when nothing could be stored
      coordinator_.members.store_device(x.living(i).metadata(), id);
    const auto handle = received(coordinator_.self->system(), devices[static_cast<size_t>(i)]);
    coordinator_.devices.joined({x.living(i).metadata(), handle, id, {}});
    coordinator_.self->monitor(caf::actor_cast<caf::actor>(handle.device));
  }
  log_info({.node = x.name()}, "node {} is back with {}", x.name(), counted(devices.size(), "device"));
}

void cluster_recovery::lost(node_id id) {
  missing_.erase(id);
}

void cluster_recovery::advance() {
  if (state_ == phase::awaiting_nodes && missing_.empty())
    recall();
}

void cluster_recovery::declare_missing_lost() {
  for (auto id : std::exchange(missing_, {})) {
    auto& node = found_.nodes.at(id);
    spdlog::warn("node {} on {}, pid {}, did not come back within {} of the coordinator's restart: it counts as lost",
                 node.about().name(), node.about().hostname(), node.about().pid(),
                 duration_text(coordinator_.options.rejoin_limit));
    coordinator_.members.note_missing(id, node);
  }
}

bool cluster_recovery::expire(uint64_t number) {
  if (number == nodes_limit_) {
    nodes_limit_ = 0;
    if (state_ == phase::awaiting_nodes) {
      declare_missing_lost();
      advance();
    }
    return true;
  }
  if (number != owners_limit_ || number == 0)
    return false;
  owners_limit_ = 0;
  give_up_owners();
  return true;
}

// -- devices ------------------------------------------------------------------------

void cluster_recovery::recall() {
  state_ = phase::recalling;
  proto::RecallRequest ask;
  ask.set_incarnation(coordinator_.options.identity.incarnation());
  for (auto& [id, device] : coordinator_.devices.devices())
    to_recall_.insert(id);
  const auto asked = to_recall_;
  for (auto id : asked) {
    const auto& device = *coordinator_.devices.find(id);
    const auto failed = [this, id = id](const caf::error& problem) {
      if (coordinator_.devices.find(id) != nullptr)
        coordinator_.members.fence(
          id, {fmt::format("it did not say what it knows after the coordinator's restart: {}", render(problem)),
               "coordinator", coordinator_.now_ns()});
      recalled(id);
    };
    coordinator_.self->request(caf::actor_cast<device_actor>(device.handle.device), recall_limit, ask)
      .then(
        [this, id = id, failed](proto::Recalled& x) {
          if (auto problem = error_in(x))
            return failed(problem);
          known_[id] = std::move(x);
          recalled(id);
        },
        failed);
  }
  if (asked.empty())
    build_communicators();
}

void cluster_recovery::recalled(device_id device) {
  if (to_recall_.erase(device) != 0 && to_recall_.empty())
    build_communicators();
}

// -- communicators --------------------------------------------------------------------

void cluster_recovery::build_communicators() {
  ensure(state_ == phase::recalling, "communicators are built when all devices have said what they know");
  for (auto& [id, device] : found_.devices)
    if (coordinator_.devices.find(id) == nullptr)
      coordinator_.members.note_missing(id, device);
  for (auto& [id, stored] : found_.communicators)
    build(stored);
  end_unknown();
  for (auto& [id, said] : known_)
    if (coordinator_.devices.find(id) != nullptr)
      restore_allocations(id, said);
  state_ = phase::done;
  coordinator_.members.introduce_nodes();
  spdlog::info("the cluster is found again: {}, {} and {}", counted(coordinator_.devices.nodes().size(), "node"),
               counted(coordinator_.devices.devices().size(), "device"),
               counted(coordinator_.communicators.alive().size(), "communicator"));
  if (!owners_.empty()) {
    owners_limit_ = coordinator_.next_number();
    coordinator_.self->delayed_send(coordinator_.self, coordinator_.options.orphan_limit, atom::expire_v,
                                    owners_limit_);
  }
  known_.clear();
  found_ = {};
  coordinator_.info.serve();
  coordinator_.devices_freed();
}

void cluster_recovery::build(const proto::StoredCommunicator& stored) {
  const communicator_id id{stored.comm_id()};
  std::map<device_id, proto::RecalledCommunicator> known;
  for (auto& [device, said] : known_) {
    if (coordinator_.devices.find(device) == nullptr)
      continue;
    for (auto& its : said.communicators())
      if (its.comm_id() == stored.comm_id())
        known[device] = its;
  }
  if (std::ranges::any_of(known, [](auto& x) { return x.second.has_ended(); })) {
    std::vector<device_id> devices;
    for (auto& x : known)
      devices.push_back(x.first);
    return end(id, devices);
  }
  // A member that was not sent the members before the coordinator ended knows nothing, and is there.
  for (auto& x : stored.devices())
    if (const auto device = id_of(x); coordinator_.devices.find(device) != nullptr)
      known.try_emplace(device);
  resumed_communicator from;
  from.known = recover(stored, known);
  auto& options = coordinator_.options;
  for (auto& rank : from.known.ranks)
    if (const auto* device = coordinator_.devices.find(rank.id()))
      from.handles[rank.id()] = device->handle;
  for (auto device : from.known.lost) {
    const auto why = why_lost_.find(device);
    from.lost.emplace_back(device, why != why_lost_.end() ? why->second : "it is gone since the coordinator's restart");
  }
  if (from.handles.empty()) {
    coordinator_.metadata.erase(metadata_key::of(id));
    coordinator_.communicators.failed(id, make_error(errc::device_lost, "all of its devices were lost while the "
                                                                        "coordinator was away"));
    log_error({.communicator = id.value}, "communicator {} is lost with all of its devices", id.value);
    return;
  }
  auto opts = options.communicators;
  opts.id = id;
  opts.policy = stored.policy();
  opts.deterministic = stored.deterministic();
  opts.name = stored.name();
  opts.coordinator = coordinator_.self;
  for (auto& [device, handle] : from.handles)
    coordinator_.devices.take(device, id);
  known_communicator like;
  like.policy = stored.policy();
  like.deterministic = stored.deterministic();
  like.outlives_client = stored.outlives_client();
  like.stored = stored;
  like.name = stored.name();
  if (!stored.group().empty())
    coordinator_.ranks.restore(stored, from.known.lost);
  like.handle = caf::actor_cast<caf::strong_actor_ptr>(
    coordinator_.self->spawn<fair_communicator, caf::monitored>(std::move(opts), std::move(from)));
  coordinator_.communicators.made(id, std::move(like));
  coordinator_.access.restored(id, stored.maker());
  if (!stored.owner().empty())
    owners_[stored.owner()].communicators.insert(id);
}

void cluster_recovery::restore_allocations(device_id device, const proto::Recalled& said) {
  for (auto& x : said.allocations()) {
    const owned_range range{device, x.address()};
    coordinator_.access.allocated(range, x.bytes(), x.maker());
    if (!x.owner().empty())
      owners_[x.owner()].ranges.insert(range);
  }
}

/// Communicators of which members know and the store does not: the coordinator ended between the two, and no client has
/// had an answer.
void cluster_recovery::end_unknown() {
  std::map<communicator_id, std::vector<device_id>> unknown;
  for (auto& [device, said] : known_)
    for (auto& its : said.communicators())
      if (const communicator_id id{its.comm_id()};
          !found_.communicators.contains(id) && coordinator_.devices.find(device) != nullptr)
        unknown[id].push_back(device);
  for (auto& [id, devices] : unknown)
    end(id, devices);
}

void cluster_recovery::end(communicator_id id, const std::vector<device_id>& devices) {
  coordinator_.metadata.erase(metadata_key::of(id));
  coordinator_.stop_streams_of(id, devices);
  log_info({.communicator = id.value},
           "communicator {} was starting or ending when the coordinator was restarted, and has ended", id.value);
}

// -- clients --------------------------------------------------------------------------

proto::ClientReturnResponse cluster_recovery::client_returned(const proto::ClientReturn& x) {
  for (auto& calls : x.calls())
    if (auto communicator = coordinator_.communicator_of(communicator_id{calls.comm_id()})) {
      proto::CallsAcknowledged acknowledged;
      acknowledged.set_comm_id(calls.comm_id());
      acknowledged.set_sequence(calls.sequence());
      coordinator_.self->send(*communicator, std::move(acknowledged));
    }
  auto client = coordinator_.self->current_sender();
  auto owned = owners_.extract(x.owner());
  if (owned && client) {
    for (auto id : owned.mapped().communicators)
      if (coordinator_.communicators.find(id) != nullptr)
        coordinator_.clients.own(client->address(), id);
    for (auto range : owned.mapped().ranges)
      if (coordinator_.devices.find(range.device) != nullptr)
        coordinator_.clients.own(client->address(), range);
  }
  return {};
}

void cluster_recovery::freed(owned_range what) {
  for (auto& [owner, left] : owners_)
    left.ranges.erase(what);
}

void cluster_recovery::give_up_owners() {
  for (auto& [owner, left] : std::exchange(owners_, {})) {
    std::erase_if(left.communicators, [&](auto id) { return coordinator_.communicators.find(id) == nullptr; });
    if (!left.communicators.empty())
      spdlog::info("the client that made communicator {} has not come back within {}: it is destroyed",
                   fmt::join(left.communicators, ", "), duration_text(coordinator_.options.orphan_limit));
    coordinator_.clients.end_without_owner(std::move(left));
  }
}

} // namespace ringmaster
