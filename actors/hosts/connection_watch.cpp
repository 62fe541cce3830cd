#include "actors/hosts/connection_watch.hpp"

#include <caf/send.hpp>

#include <map>
#include <mutex>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <vector>

namespace ringmaster {

namespace {

#ifndef TCP_RTO_MAX_MS
constexpr int rto_max_option = 44; // younger than the headers
#else
constexpr int rto_max_option = TCP_RTO_MAX_MS;
#endif

/// In TCP_USER_TIMEOUT, which says when the system itself gives a connection up: not before this, which the watch is
/// faster than; and the system keeps trying for no longer when the process has exited. What is more is the limit of a
/// way, which sockets that are accepted have from the one that listens.
constexpr std::chrono::milliseconds never = std::chrono::hours{1};

constexpr auto watch_name = caf::atom("connwatch"); // among the middleman's brokers

std::mutex watches_guard;
std::map<const caf::actor_system*, connection_watch*> watches;

std::chrono::milliseconds way_limit_of(int socket) {
  unsigned ms = 0;
  socklen_t size = sizeof ms;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &size) != 0 || ms <= never.count())
    return {};
  return std::chrono::milliseconds{ms} - never;
}

} // namespace

void leave_limits_to_watch(int socket, std::chrono::milliseconds way) {
  const auto ms = static_cast<unsigned>((never + way).count());
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
  const int second_ms = 1000;
  ::setsockopt(socket, IPPROTO_TCP, rto_max_option, &second_ms, sizeof second_ms); // without it, it takes longer
}

connection_watch::connection_watch(caf::actor_config& cfg)
  : broker(cfg), protocol_(system().middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"))),
    interval_(caf::get_or(system().config(), "middleman.heartbeat-interval", caf::timespan{0})),
    limit_(caf::get_or(system().config(), "middleman.connection-timeout", caf::timespan{0})),
    has_sockets_(dynamic_cast<caf::io::network::default_multiplexer*>(&system().middleman().backend()) != nullptr) {
  std::scoped_lock lock{watches_guard};
  watches[&system()] = this;
}

connection_watch::~connection_watch() {
  std::scoped_lock lock{watches_guard};
  watches.erase(&system());
}

connection_watch* connection_watch::of(const caf::actor_system& system) {
  std::scoped_lock lock{watches_guard};
  const auto found = watches.find(&system);
  return found == watches.end() ? nullptr : found->second;
}

void connection_watch::part_from(const caf::actor_system& system, const caf::node_id& process) {
  if (auto* watch = of(system))
    caf::anon_send(caf::actor_cast<caf::actor>(watch), process);
}

caf::behavior connection_watch::make_behavior() {
  if (interval_.count() > 0 && limit_.count() > 0)
    delayed_send(this, interval_, caf::tick_atom_v);
  return {[this](caf::tick_atom) {
            look();
            delayed_send(this, interval_, caf::tick_atom_v);
          },
          [this](const caf::node_id& process) {
            if (const auto its = protocol().instance.tbl().lookup_direct(process))
              close(*its);
          }};
}

caf::io::basp_broker& connection_watch::protocol() const {
  return static_cast<caf::io::basp_broker&>(*caf::actor_cast<caf::abstract_actor*>(protocol_));
}

connection_watch::time_point connection_watch::last_heard(const caf::io::basp::endpoint_context& connection) const {
  const auto known = known_.find(connection.hdl);
  return known != known_.end() && known->second.noted == connection.last_seen ? known->second.heard
                                                                              : connection.last_seen;
}

void connection_watch::look() {
  const auto now = clock().now();
  auto& all = protocol().ctx;
  const auto& routes = protocol().instance.tbl(); // `endpoint_context::id` is set only at the end that has connected
  std::erase_if(known_, [&](auto& x) { return all.count(x.first) == 0; });
  std::vector<caf::io::connection_handle> lost;
  for (auto& [handle, connection] : all) {
    if (connection.callback || !routes.lookup_direct(handle))
      continue; // not greeted yet
    const auto heard = last_heard(connection);
    const auto tcp = progress_of(handle);
    if (is_silent_too_long(now - heard, limit_, tcp)
        || (has_sockets_ && is_way_lost(way_limit_of(static_cast<int>(handle.id())), tcp)))
      lost.push_back(handle);
    else
      known_[handle] = {heard, now};
    connection.last_seen = now;
  }
  for (auto handle : lost)
    close(handle);
}

/// As CAF's own limit does.
void connection_watch::close(caf::io::connection_handle which) {
  if (has_sockets_) {
    const unsigned soon_ms = 1; // it need not tell the other end
    ::setsockopt(static_cast<int>(which.id()), IPPROTO_TCP, TCP_USER_TIMEOUT, &soon_ms, sizeof soon_ms);
  }
  auto& all = protocol();
  all.context(context());
  all.connection_cleanup(which, caf::sec::connection_timeout);
  all.close(which);
  known_.erase(which);
}

tcp_progress connection_watch::progress_of(caf::io::connection_handle which) const {
  tcp_info known{};
  socklen_t size = sizeof known;
  if (!has_sockets_ // a handle is a socket's number
      || ::getsockopt(static_cast<int>(which.id()), IPPROTO_TCP, TCP_INFO, &known, &size) != 0)
    return {};
  using std::chrono::milliseconds;
  return {known.tcpi_unacked > 0,
          known.tcpi_retransmits > 0,
          milliseconds{known.tcpi_last_data_sent},
          milliseconds{known.tcpi_last_ack_recv},
          std::chrono::floor<milliseconds>(std::chrono::microseconds{known.tcpi_rto}),
          milliseconds{known.tcpi_last_data_recv}};
}

void connection_watch::start(caf::io::middleman& of_system) {
  of_system.named_broker<connection_watch>(watch_name);
}

namespace {

trust_settings settings_of(const caf::actor_system_config& config) {
  const auto* source = dynamic_cast<const trust_source*>(&config);
  return source == nullptr ? trust_settings{} : source->trust();
}

} // namespace

watched_middleman::watched_middleman(caf::actor_system& system)
  : middleman(system), trust_(settings_of(system.config())), backend_(&system) {}

void watched_middleman::start() {
  middleman::start();
  connection_watch::start(*this);
}

} // namespace ringmaster
