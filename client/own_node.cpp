#include "client/own_node.hpp"

#include "actors/calls/await_down.hpp"
#include "actors/configuration/settings.hpp"
#include "actors/hosts/connections.hpp"
#include "actors/hosts/process_trust.hpp"
#include "actors/links/sockets.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "client/client.hpp"
#include "messages/try.hpp"
#include "runtime/configuration/routes.hpp"
#include "runtime/logging/log.hpp"
#include "runtime/text/endpoint.hpp"
#include "runtime/text/file_size_limit.hpp"
#include "runtime/text/own_address.hpp"
#include "runtime/text/quantity_text.hpp"

#include <caf/scoped_actor.hpp>

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

namespace ringmaster {

namespace {

/// Of several coordinators' addresses, the one that decides about this host's own.
caf::expected<endpoint> first_endpoint(const std::string& list) {
  TRY(all, parse_endpoints(list));
  return std::move(all->front());
}

/// Whether it is a loopback address here, as a host's own name is where Debian's installer has made it 127.0.1.1.
bool is_for_this_host(const std::string& address) {
  auto own = own_address_towards({address, 9});
  return own && is_loopback(*own);
}

/// What an operator of several hosts should know. The coordinator may be elsewhere: its address is none of this host's.
void warn_if_for_this_host(const std::string& name, const std::string& address, const options& opts) {
  auto coordinator = first_endpoint(opts.node.join);
  auto own = coordinator ? own_address_towards(*coordinator) : caf::expected<std::string>{coordinator.error()};
  if (own && !is_loopback(*own) && *own != coordinator->host && is_for_this_host(address))
    spdlog::warn("node {} tells the others that it is at {}, a loopback address here: other hosts do not reach it, and "
                 "their messages take the way through the coordinator's process; --listen-host auto takes the address "
                 "that leads to the coordinator, {}",
                 name, address, *own);
}

/// Of this host, of one family, that leads out of it; a packet to these documentation addresses is never sent.
std::optional<std::string> usual_address(bool ipv6) {
  auto usual = own_address_towards({ipv6 ? "2001:db8::1" : "192.0.2.1", 9});
  if (usual && !is_loopback(*usual))
    return *usual;
  for (auto& each : addresses_of_host()) // a bridge for containers is one, too
    if ((each.find(':') != std::string::npos) == ipv6)
      return each;
  return std::nullopt;
}

/// The local end of the route to the coordinator: loopback only where the coordinator is at loopback.
caf::expected<std::string> address_towards_coordinator(const options& opts) {
  if (opts.node.join.empty())
    return loopback_address();
  TRY(coordinator, first_endpoint(opts.node.join));
  if (is_loopback(coordinator->host)) // by name it may be either family's
    return is_own_address(coordinator->host) ? coordinator->host : loopback_address();
  auto own = own_address_towards(*coordinator);
  if (!own || !is_loopback(*own))
    return own;
  // The coordinator is on this host, and its name means so here; elsewhere it means another address of this host.
  for (bool ipv6 : {false, true})
    if (auto usual = usual_address(ipv6))
      return *usual;
  return own;
}

/// Where a node listens, and the address that the others are given.
struct node_address {
  std::string listens_at;
  std::string for_others;
};

caf::expected<node_address> address_of(const options& opts) {
  const auto wanted = listening_address(opts.node.listen_host);
  if (wanted != "auto" && !is_any_address(wanted))
    return node_address{wanted, wanted};
  TRY(own, address_towards_coordinator(opts));
  if (wanted == "auto")
    return node_address{*own, *own};
  const bool ipv6_only = own->find(':') != std::string::npos && wanted.find(':') == std::string::npos;
  return node_address{wanted, ipv6_only ? usual_address(false).value_or(loopback_address()) : *own};
}

/// By which other nodes make bulk connections to this one: as for messages where that was said; else where the
/// coordinator's way begins, since it is one of this host that leads somewhere. If that is only the loopback, because
/// the coordinator is on this host and has a name that means so here, then all that the host has.
caf::expected<std::string> bulk_address(const options& opts) {
  const auto wanted = listening_address(opts.node.listen_host);
  if (wanted != "auto" && !is_any_address(wanted) && !is_for_this_host(wanted))
    return wanted;
  auto coordinator = first_endpoint(opts.node.join);
  if (!coordinator)
    return loopback_address();
  if (is_loopback(coordinator->host))
    return is_own_address(coordinator->host) ? coordinator->host : loopback_address();
  auto own = own_address_towards(*coordinator);
  return own && is_loopback(*own) ? "all" : own;
}

/// Null where the configuration wants none, or where none can be and another way is allowed.
caf::expected<std::shared_ptr<link_hub>> make_link(caf::actor_system& system, const options& opts) {
  if (!may_go(opts.route.use, &route_facts::has_links))
    return std::shared_ptr<link_hub>{};
  auto settings = link_settings(opts);
  if (settings.addresses.empty()) {
    TRY(own, bulk_address(opts));
    settings.addresses.push_back(std::move(*own));
  }
  TRY(trust, process_trust::of(system).for_listening(listener_kind::bulk_link, settings.port));
  settings.trust = std::move(*trust);
  auto result = link_hub::start(settings);
  if (result || must_go(opts.route.use, &route_facts::has_links))
    return result;
  spdlog::warn("{}; blocks of other hosts travel in messages", render(result.error()));
  return std::shared_ptr<link_hub>{};
}

} // namespace

caf::expected<std::unique_ptr<own_node>> own_node::start(caf::actor_system& system, const options& opts,
                                                         const coordinator_actor& coordinator, bool listens,
                                                         purpose why, const std::string& job) {
  survive_file_size_limit();
  TRY(link, make_link(system, opts));
  TRY(memory, memory_directory::open(opts.device.memory_dir, memory_files_bytes(opts), memory_file_bytes(opts)));
  std::unique_ptr<own_node> result{new own_node{system, std::make_shared<memory_directory>(std::move(*memory))}};
  auto settings = node_settings(opts, result->memory_->path());
  settings.device.keep_memory_dir = keeper_of(result->memory_);
  result->name_ = settings.name;
  set_log_node(result->name_);
  result->joined_ = settings.joined;
  settings.plays_rank = why == purpose::plays_rank;
  settings.job = job;
  settings.device.streams_options.link = std::move(*link);
  result->handle_ = system.spawn(node, std::move(settings));
  if (listens)
    RETURN_ERROR(result->listen(opts));
  if (!coordinator)
    return result;
  proto::Adopt join;
  join.set_host(result->address_);
  join.set_port(result->port_);
  caf::anon_send(result->handle_, std::move(join), caf::actor_cast<caf::strong_actor_ptr>(coordinator));
  return result;
}

caf::error own_node::listen(const options& opts) {
  TRY(address, address_of(opts));
  address_ = std::move(address->for_others);
  warn_if_for_this_host(name_, address_, opts);
  auto port = listen_for(handle_, system_, address->listens_at, opts.node.listen_port, listener_kind::node, way_limit);
  if (!port)
    return make_error(errc::io_error,
                      fmt::format("cannot listen at {}: {}",
                                  text_of(endpoint{address->listens_at, opts.node.listen_port}), render(port.error())));
  port_ = *port;
  return caf::none;
}

own_node::~own_node() {
  caf::scoped_actor self{system_};
  self->monitor(handle_);
  self->send_exit(handle_, caf::exit_reason::user_shutdown);
  if (!await_down(*self, std::chrono::seconds{10}))
    spdlog::error("the devices of node {} did not end within 10 s", name_);
}

caf::expected<std::vector<device_id>> own_node::await_devices(const coordinator_actor& coordinator,
                                                              caf::timespan limit) {
  constexpr auto look_again = std::chrono::milliseconds{5};
  caf::scoped_actor self{system_};
  self->monitor(handle_);
  client host{system_, coordinator, limit};
  for (auto give_up = awake_clock::actor_now() + limit; awake_clock::actor_now() < give_up;) {
    TRY(there, host.devices());
    auto found = devices_in(*there);
    for (auto& node : there->nodes())
      if (node.name() == name_ && !found.empty() && found.size() == node.devices_announced())
        return found;
    if (auto down = await_down(*self, look_again); down && down->reason)
      return std::move(down->reason);
  }
  return make_error(errc::timed_out,
                    fmt::format("the devices of node {} had not joined after {}", name_, duration_text(limit)));
}

std::vector<device_id> own_node::devices_in(const proto::ClusterInfo& cluster) const {
  std::vector<device_id> result;
  for (auto& node : cluster.nodes())
    for (auto& device : cluster.devices())
      if (node.name() == name_ && device.node_id() == node.node_id())
        result.push_back(id_of(device.metadata()));
  return result;
}

caf::expected<std::shared_ptr<mapped_memory>> own_node::map_memory(const gpu_sim::DeviceMetadata& device) const {
  memory_place place;
  place.device = id_of(device);
  place.file = std::filesystem::absolute(memory_file(memory_->path(), place.device));
  struct stat about {};
  if (::stat(place.file.c_str(), &about) != 0)
    return make_error(errc::io_error, fmt::format("{}: {}", place.file, std::strerror(errno)));
  place.min_address = device.minmemaddr().value();
  place.bytes = device.maxmemaddr().value() - place.min_address;
  place.host = this_host();
  place.file_system = about.st_dev;
  place.inode = about.st_ino;
  return mapped_memory::reach(place, mapped_memory::access::write);
}

} // namespace ringmaster
