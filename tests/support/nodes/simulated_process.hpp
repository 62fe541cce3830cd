#pragma once

#include "tests/support/deterministic_system.hpp"

#include <caf/io/middleman.hpp>
#include <caf/io/network/test_multiplexer.hpp>

#include <optional>
#include <string>

namespace ringmaster::test {

/// A process of a simulated cluster, in the test's thread: an actor system of its own with a node id of its own. So
/// handles that go to another one become proxies there, messages are serialised by CAF's own protocol (BASP), monitors
/// and links go over connections and break with them, as between real processes. The protocol's broker writes to a
/// buffer and reads from one, which `simulated_network` carries; it runs as soon as it has something to do, since how
/// long that takes is part of a message's delay. Nothing else in it runs, and its clock stands, until a test says so.
class simulated_process {
public:
  using time_point = std::chrono::steady_clock::time_point;

  enum class condition {
    running,
    paused, ///< Handles nothing and reads nothing.
    ended   ///< Killed. Its actors lie there until they are cleared away.
  };

  explicit simulated_process(std::string name);
  ~simulated_process();

  bool runs() const { return state == condition::running; }
  void pause(time_point now);
  /// Its clock excludes the pause, as `awake_clock` does.
  void resume(time_point now);
  /// Sets its clock.
  void see(time_point now) { scheduler.clock().current_time = now - paused_for_; }
  /// Messages that could be handled now, one for each actor that has any.
  size_t ready() const { return scheduler.jobs.size(); }
  /// Handles one of them.
  void handle(size_t which, time_point now);
  /// When it has something to do next, apart from messages.
  std::optional<time_point> next_timeout() const;
  /// Fires the timeouts that are due.
  void wake(time_point now);
  /// Runs the broker until it has nothing to do.
  void serve_network() { network.flush_runnables(); }
  size_t actors() { return sys.registry().running(); }

private:
  struct config : deterministic_system::config {
    config();
  };

  config cfg_;
  time_point paused_at_;
  time_point::duration paused_for_{0}; ///< In all, as far as it notices.

public:
  const std::string name;
  caf::actor_system sys;
  caf::scheduler::test_coordinator& scheduler;
  caf::io::network::test_multiplexer& network;
  caf::actor protocol; ///< BASP's broker.
  condition state = condition::running;
};

} // namespace ringmaster::test
