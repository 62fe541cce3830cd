#pragma once

#include "actors/hosts/process_trust.hpp"
#include "runtime/health/connection_silence.hpp"

#include <caf/io/basp_broker.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/network/default_multiplexer.hpp>

#include <chrono>
#include <unordered_map>

namespace ringmaster {

/// Decides when a connection of CAF's protocol is lost, in place of CAF's own `middleman.connection-timeout`, which
/// looks at the time alone: see `connection_silence.hpp`. A broker, for all brokers of a system run on one thread: so
/// it may look at, and close, what CAF's own one has. One of a system, made when that starts.
///
/// It looks every `middleman.heartbeat-interval`, by the actors' clock, which excludes pauses of this process. CAF's
/// own limit never passes, for each look notes that the connection is watched (`last_seen`); it holds until a
/// connection is greeted.
class connection_watch final : public caf::io::broker {
public:
  using time_point = caf::actor_clock::time_point;

  explicit connection_watch(caf::actor_config& cfg);
  ~connection_watch() override;

  caf::behavior make_behavior() override;
  const char* name() const override { return "connection_watch"; }

  /// Before other threads use the middleman, which ends it.
  static void start(caf::io::middleman& of_system);
  /// The one of this system; null: it has none.
  static connection_watch* of(const caf::actor_system& system);

  /// Closes the connection with a process, if this one has one, as if it had been lost: what comes later from there
  /// reaches no actor. Any thread.
  static void part_from(const caf::actor_system& system, const caf::node_id& process);

  /// Since when nothing has come. On this broker's thread.
  time_point last_heard(const caf::io::basp::endpoint_context& connection) const;

private:
  struct known_connection {
    time_point heard, noted; ///< `noted`: what was written into `last_seen`.
  };

  void look();
  void close(caf::io::connection_handle which);
  tcp_progress progress_of(caf::io::connection_handle which) const;
  caf::io::basp_broker& protocol() const;

  caf::actor protocol_;
  const caf::timespan interval_, limit_;
  bool has_sockets_; ///< Not in a test.
  std::unordered_map<caf::io::connection_handle, known_connection> known_;
};

/// CAF's middleman with a `connection_watch`, and with what this process knows of its cluster's secret.
class watched_middleman final : public caf::io::middleman {
public:
  explicit watched_middleman(caf::actor_system& system);

  static caf::actor_system::module* make(caf::actor_system& system, caf::detail::type_list<>) {
    return new watched_middleman(system);
  }

  void start() override;
  caf::io::network::multiplexer& backend() override { return backend_; }
  process_trust& trust() { return trust_; }

private:
  process_trust trust_;
  caf::io::network::default_multiplexer backend_;
};

/// For a socket of CAF's protocol, or one that listens and hands its settings on: retransmits every second at least
/// where the system can (Linux 6.15), and leaves it to the watch when the connection is lost. `way`: for how long the
/// other host's system may leave bytes unacknowledged; 0: not limited.
void leave_limits_to_watch(int socket, std::chrono::milliseconds way);

} // namespace ringmaster
