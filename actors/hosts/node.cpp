#include "actors/hosts/node.hpp"

#include "actors/calls/answers.hpp"
#include "actors/hosts/connections.hpp"
#include "actors/hosts/coordinator_proxy.hpp"
#include "actors/hosts/relay.hpp"
#include "actors/links/link_hub.hpp"
#include "messages/version.hpp"
#include "messages/wire_ids.hpp"
#include "runtime/health/clock_estimates.hpp"
#include "runtime/logging/log.hpp"
#include "runtime/text/quantity_text.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/blocking_actor.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace ringmaster {

proto::NodeJoinRequest node_state::about() const {
  proto::NodeJoinRequest request;
  request.set_name(options.name);
  request.set_host(address_.host);
  request.set_port(address_.port);
  request.set_pid(options.pid);
  request.set_devices(options.devices);
  request.set_hostname(options.hostname);
  request.set_protocol(protocol_version);
  request.set_host_id(options.host_id);
  request.set_plays_rank(options.plays_rank);
  request.set_job(options.job);
  if (auto& link = options.device.streams_options.link)
    request.set_link_process(link->place().process);
  request.set_route(options.device.streams_options.route);
  return request;
}

void node_state::join(const proto::Adopt& x) {
  if (x.device_ids_size() > 0)
    options.devices = static_cast<uint32_t>(x.device_ids_size());
  address_ = {x.host(), static_cast<uint16_t>(x.port())};
  self->monitor(options.coordinator);
  notify_of_return(options.coordinator, node_actor{self});
  std::vector<device_id> wanted;
  for (auto id : x.device_ids())
    wanted.push_back(device_id{id});
  auto asked_ns = unix_ns();
  self->request(options.coordinator, options.join_limit, about(), self->ctrl())
    .then(
      [this, wanted, asked_ns](const proto::NodeJoinResponse& y, const caf::strong_actor_ptr& journal) {
        if (auto problem = error_in(y))
          return self->quit(std::move(problem));
        joined(y, journal);
        note_clock(asked_ns, y.time_ns());
        options.device.streams_options.force(y.route());
        host(id_, wanted);
      },
      [this](const caf::error& problem) {
        if (problem == errc::permission_denied)
          return self->quit(problem);
        self->quit(make_error(errc::timed_out,
                              fmt::format("the coordinator did not let node {} join within {:.1f} s: {}", options.name,
                                          std::chrono::duration<double>{options.join_limit}.count(), render(problem))));
      });
}

void node_state::joined(const proto::NodeJoinResponse& x, const caf::strong_actor_ptr& journal) {
  if (!options.device.streams_options.journal)
    options.device.streams_options.journal = caf::actor_cast<journal_actor>(journal);
  id_ = node_id{x.node_id()};
  cluster_ = x.cluster();
  *options.joined = true;
  same_clock_ = x.same_clock();
  if (same_clock_)
    options.device.streams_options.clock.offset_ns = x.clock_offset_ns();
}

void node_state::rejoin(const proto::ClusterIdentity& now) {
  if (id_ == node_id{})
    return; // it had not joined: its request is sent again
  auto request = about();
  request.set_node_id(id_.value);
  *request.mutable_cluster() = cluster_;
  device_handles handles;
  for (auto& [ready, handle] : living_->living()) {
    *request.add_living() = ready;
    handles.push_back(handle);
  }
  spdlog::info("the coordinator is back (incarnation {}): node {} joins it again with its {}", now.incarnation(),
               options.name, counted(handles.size(), "device"));
  self->request(options.coordinator, options.join_limit, std::move(request), self->ctrl(), std::move(handles))
    .then(
      [this](const proto::NodeJoinResponse& y, const caf::strong_actor_ptr&) {
        if (auto problem = error_in(y)) // as one that has lost its coordinator
          return end(make_error(errc::unreachable, render(problem)));
        cluster_ = y.cluster();
      },
      [this](const caf::error& problem) {
        end(make_error(errc::unreachable, "the coordinator did not let the node come back: " + render(problem)));
      });
}

void node_state::note_clock(uint64_t asked_ns, uint64_t theirs_ns) {
  auto& journal = options.device.streams_options.journal;
  if (!journal || !is_elsewhere(options.coordinator, self->system()))
    return;                                                                                      // it is the same one
  auto before = same_clock_ ? clock_offset{} : clock_offset::of(asked_ns, theirs_ns, unix_ns()); // theirs before ours
  proto::Record record;
  record.set_time_ns(theirs_ns);
  record.mutable_node_clock()->set_node_id(id_.value);
  record.mutable_node_clock()->set_offset_ns(-before.offset_ns);
  record.mutable_node_clock()->set_error_ns(before.error_ns);
  self->send(journal, std::move(record));
}

void node_state::host(node_id own, const std::vector<device_id>& wanted_ids) {
  supervisor_options settings;
  settings.name = fmt::format("{}/devices", options.name);
  settings.restarts_max = options.restarts_max;
  settings.period = options.period;
  settings.judge = [](const caf::error& reason) {
    switch (code_of(reason)) {
      case errc::io_error: return restart_verdict::starved; // it could not make its memory file
      case errc::suspected:         // this process, its host or the network was stalled; and there may be many
      case errc::killed_on_request: // it was requested
      case errc::device_lost:       // its memory file was cut, or its disk is full
        return restart_verdict::pardoned;
      default: return restart_verdict::counts;
    }
  };
  auto device_settings = options.device;
  device_settings.node = own;
  device_settings.relay = make_relay(self->system(), options.report_limit, same_clock_ ? node_id{} : own,
                                     options.device.streams_options.clock, living_);
  self->link_to(device_settings.relay);
  device_settings.coordinator = options.coordinator;
  for (uint32_t i = 0; i < options.devices; ++i) {
    auto first_id = std::make_shared<device_id>(i < wanted_ids.size() ? wanted_ids[i] : device_id{});
    settings.children.push_back({fmt::format("device-{}", i),
                                 [device_settings, first_id](caf::event_based_actor* parent) {
                                   auto opts = device_settings;
                                   opts.wanted_id = std::exchange(*first_id, device_id{}); // an id is never used twice
                                   return caf::actor_cast<caf::actor>(parent->spawn(device, opts));
                                 }});
  }
  devices = self->spawn<caf::monitored>(supervisor, std::move(settings));
}

// -- the other nodes ---------------------------------------------------------------

void node_state::meet(const proto::NodePeers& x) {
  places_.clear();
  for (auto& peer : x.peers())
    places_[peer.name()] = {{peer.host(), static_cast<uint16_t>(peer.port())}, peer.link_process()};
  std::map<std::string, known_peer> now;
  for (auto& peer : x.peers()) {
    if (peer.name() == options.name)
      break; // later nodes in the list connect to us
    auto known = peers_.extract(peer.name());
    bool same = known && known.mapped().where.host() == peer.host() && known.mapped().where.port() == peer.port();
    now[peer.name()] = same ? std::move(known.mapped()) : known_peer{peer, {}};
  }
  peers_ = std::move(now);
  forget_visitors(x);
  for (auto& known : peers_)
    if (!known.second.met)
      connect(known.second.where);
}

void node_state::connect(const proto::NodePeers::Peer& peer) {
  auto known = peers_.find(peer.name());
  if (known == peers_.end() || known->second.met || self->clock().now() < known->second.not_before
      || std::exchange(known->second.trying, true))
    return;
  if (options.reach)
    return options.reach(node_actor{self}, peer);
  // On its own thread, so that a silent peer delays nothing here. With an argument: CAF 0.17 takes a reference
  // to those of a function without any, which are not there.
  auto try_it = [us = node_actor{self}, limit = options.join_limit](caf::blocking_actor* helper,
                                                                    const proto::NodePeers::Peer& there) {
    proto::NodeApart result;
    result.set_peer(there.name());
    auto found = connect_to(helper->system(), {there.host(), static_cast<uint16_t>(there.port())}, limit,
                            listener_kind::node, way_limit);
    if (!found) {
      result.set_why(render(found.error()));
      result.set_half_made(code_of(found.error()) == errc::timed_out);
    } else if (!found->handle)
      result.set_why("no node listens there");
    helper->send(us, std::move(result), found ? found->handle : nullptr);
  };
  self->spawn<caf::detached>(try_it, peer);
}

void node_state::connect_again(const proto::NodePeers::Peer& peer) {
  auto known = peers_.find(peer.name());
  if (known == peers_.end())
    return;
  if (self->current_sender() != self->ctrl()) // the coordinator says so
    known->second.not_before = {};            // the other end knows, too
  else if (self->clock().now() < known->second.again_at)
    return; // another message will come
  connect(known->second.where);
}

caf::timespan node_state::loss_limit() const {
  constexpr auto margin = std::chrono::seconds{5};
  return caf::get_or(self->system().config(), "middleman.connection-timeout", caf::timespan{std::chrono::seconds{20}})
         + margin;
}

void node_state::visited(const std::string& peer_name, const caf::strong_actor_ptr& peer) {
  auto& known = visitors_[peer_name];
  known.where.set_name(peer_name);
  known.met = peer->address();
  acquaintances_[peer_name] = {known.met};
  self->monitor(caf::actor_cast<caf::actor>(peer));
  proto::NodeApart noted;
  noted.set_peer(options.name);
  noted.set_visit_noted(true);
  self->send(caf::actor_cast<node_actor>(peer), std::move(noted), caf::strong_actor_ptr{});
  tell_apart(known, {});
}

void node_state::forget_visitors(const proto::NodePeers& x) {
  std::erase_if(visitors_, [&](auto& known) {
    auto is_it = [&](auto& peer) { return peer.name() == known.first; };
    return !known.second.met && std::none_of(x.peers().begin(), x.peers().end(), is_it);
  });
}

void node_state::met(const proto::NodeApart& x, const caf::strong_actor_ptr& peer) {
  auto known = peers_.find(x.peer());
  if (known == peers_.end()) {
    if (peer)
      visited(x.peer(), peer);
    return; // else it has left
  }
  if (x.visit_noted()) {
    known->second.visit_noted = true;
    return;
  }
  known->second.trying = false;
  if (peer) {
    proto::NodeApart visit;
    visit.set_peer(options.name);
    self->send(caf::actor_cast<node_actor>(peer), std::move(visit), self->ctrl());
    known->second.met = peer->address();
    acquaintances_[x.peer()] = {known->second.met};
    known->second.visit_noted = false;
    known->second.warned = false;
    self->monitor(caf::actor_cast<caf::actor>(peer));
    if (known->second.half_made_until)
      tell_again(known->second, make_error(errc::unreachable, "a half-made connection is complete"));
    if (known->second.apart) {
      log_info({.node = x.peer()}, "there is a direct connection to node {} again", x.peer());
      tell_apart(known->second, {});
    }
    return;
  }
  not_met(known->second, make_error(errc::unreachable, x.why()), x.half_made());
}

void node_state::not_met(known_peer& peer, const caf::error& why, bool half_made) {
  constexpr auto try_again = std::chrono::seconds{5};
  auto now = self->clock().now();
  if (!std::exchange(peer.warned, true))
    log_warn({.node = peer.where.name()},
             "there is no direct connection to node {}: messages to it pass through the coordinator's process, "
             "and so do blocks if its memory cannot be read: {}",
             peer.where.name(), render(why));
  tell_apart(peer, why);
  if (half_made)
    peer.half_made_until = now + loss_limit();
  else if (peer.half_made_until && now >= *peer.half_made_until)
    tell_again(peer, why);
  if (now < peer.again_at)
    return;
  peer.again_at = now + try_again;
  self->delayed_send(self, try_again, peer.where);
}

void node_state::tell_again(known_peer& peer, const caf::error& why) {
  peer.half_made_until.reset();
  peer.apart = false;
  tell_apart(peer, why);
}

void node_state::tell_apart(known_peer& peer, const caf::error& why) {
  const bool is_apart = static_cast<bool>(why);
  if (std::exchange(peer.apart, is_apart) == is_apart)
    return; // the coordinator knows
  proto::NodeApart x;
  x.set_node_id(id_.value);
  x.set_peer(peer.where.name());
  x.set_why(why ? render(why) : "");
  self->send(options.coordinator, std::move(x));
}

void node_state::lost_way(known_peer& peer, const caf::error& why) {
  const auto here = places_[options.name], there = places_[peer.where.name()];
  spdlog::debug("the connection with node {} was lost: {}", peer.where.name(), render(why));
  tell_apart(peer, make_error(errc::unreachable,
                              fmt::format("the connection between {} and {} was lost; where both run, look at cable, "
                                          "switch and firewall between them",
                                          text_of(here.where), text_of(there.where))));
  if (auto& link = options.device.streams_options.link)
    link->doubt(there.link_process);
}

caf::result<proto::AliveResponse> node_state::alive(const proto::AliveRequest& x) {
  constexpr auto limit = std::chrono::milliseconds{50};
  const auto known = acquaintances_.find(x.peer());
  const auto address = known == acquaintances_.end() ? caf::actor_addr{} : known->second.address;
  const auto peer = caf::actor_cast<node_actor>(address);
  if (!peer) {
    proto::AliveResponse answer;
    answer.set_peer_lives(known != acquaintances_.end() && known->second.lost_coordinator);
    return answer;
  }
  const auto number = ++last_probe_;
  auto promise = self->make_response_promise<proto::AliveResponse>();
  probes_.emplace(number, open_probe{address, promise});
  self->request(peer, limit, proto::AliveRequest{})
    .then([this, number](const proto::AliveResponse&) { answer_probe(number, true); },
          [this, number](const caf::error& why) { // its process says that the node has ended, or it is silent
            answer_probe(number, why != caf::sec::request_timeout);
          });
  return promise;
}

void node_state::answer_probe(uint64_t number, bool lives) {
  auto probe = probes_.extract(number);
  if (!probe)
    return; // the connection to the peer was lost meanwhile
  proto::AliveResponse answer;
  answer.set_peer_lives(lives);
  probe.mapped().promise.deliver(std::move(answer));
}

void node_state::note_end(const caf::down_msg& x) {
  constexpr size_t known_max = 4096;
  const bool has_lost_coordinator = code_of(x.reason) == errc::unreachable; // a node ends so; its process lives
  for (auto next = probes_.begin(); next != probes_.end();) {
    const auto probe = next++; // a request to an actor that is gone would wait for its limit
    if (probe->second.peer == x.source)
      answer_probe(probe->first, has_lost_coordinator);
  }
  for (auto& [its_name, known] : acquaintances_)
    if (known.address == x.source)
      known = {nullptr, has_lost_coordinator};
  if (acquaintances_.size() > known_max)
    std::erase_if(acquaintances_, [](auto& known) { return !known.second.address; });
}

void node_state::on_down(const caf::down_msg& x) {
  note_end(x);
  auto lost = std::find_if(peers_.begin(), peers_.end(), [&](auto& y) { return y.second.met == x.source; });
  if (lost != peers_.end()) {
    // It may have ended: then the coordinator knows it as well, and takes it off the list.
    auto& peer = lost->second;
    peer.met = nullptr;
    peer.not_before = self->clock().now() + loss_limit();
    if (!peer.visit_noted)
      peer.half_made_until = peer.not_before;
    lost_way(peer, x.reason);
    self->delayed_send(self, loss_limit(), peer.where);
    return;
  }
  auto visitor = std::find_if(visitors_.begin(), visitors_.end(), [&](auto& y) { return y.second.met == x.source; });
  if (visitor != visitors_.end()) {
    // Each end tells: one may learn late, and what it says until then is lost, also of what runs again.
    visitor->second.met = nullptr;
    return lost_way(visitor->second, x.reason);
  }
  if (options.coordinator && x.source == options.coordinator.address())
    self->quit(make_error(errc::unreachable, "the coordinator is gone: " + render(x.reason)));
  else if (devices && x.source == devices.address())
    self->quit(x.reason ? x.reason : caf::error{caf::exit_reason::unhandled_exception});
}

void node_state::end(const caf::error& reason) {
  if (devices)
    self->send_exit(devices, reason); // its end is ours
  else
    self->quit(reason);
}

node_actor::behavior_type node(node_actor::stateful_pointer<node_state> self, node_options options) {
  auto& state = self->state;
  state.self = self;
  state.options = std::move(options);
  self->set_down_handler([&state](const caf::down_msg& x) { state.on_down(x); });
  self->set_exit_handler([&state](const caf::exit_msg& x) { state.end(x.reason); });
  if (state.options.coordinator)
    state.join({});
  return {
    [&state](const proto::NodePeers& x) { state.meet(x); },
    [&state](const proto::NodeDrained&) { state.end(caf::exit_reason::user_shutdown); },
    [&state](const proto::AliveRequest& x) { return state.alive(x); },
    [&state](const proto::ClusterIdentity& x) { state.rejoin(x); },
    [&state](const proto::Adopt& x, const caf::strong_actor_ptr& host) {
      if (state.options.coordinator || !host)
        return; // it joins one already, or hosts for it; or that coordinator has ended, and another one may come
      state.options.coordinator = caf::actor_cast<coordinator_actor>(host);
      state.join(x);
    },
    [&state](const proto::NodeApart& x, const caf::strong_actor_ptr& peer) { state.met(x, peer); },
    [&state](const proto::NodePeers::Peer& x) { state.connect_again(x); },
  };
}

} // namespace ringmaster
