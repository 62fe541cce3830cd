#pragma once

#include "tools/processes/child_process.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace ringmaster::bench {

/// The rule's settings: `suspicion` in the configuration.
struct detector_settings {
  std::chrono::milliseconds late_after{500}, pause_max{1000}, idle_interval{300};
  uint32_t late = 3, window = 5;
};

/// Passes the bytes of one TCP connection after another on to a port of this host, until it is cut: then both ends stay
/// connected and hear nothing more, as over a link that fails silently.
class silent_link {
public:
  explicit silent_link(uint16_t to);
  ~silent_link();

  uint16_t port() const { return port_; }
  void cut() { is_cut_ = true; }
  /// Later connections are passed on again, and those that were cut are closed.
  void mend() { is_cut_ = false; }

private:
  void serve(const std::atomic<bool>& ended) const;

  uint16_t to_;
  uint16_t port_ = 0;
  launch::unique_fd door_;
  std::atomic<bool> is_cut_{false}, ended_{false};
  std::thread thread_;
};

/// A coordinator and nodes, each a process of this host. The last node reaches the coordinator by a `silent_link`.
class bench_cluster {
public:
  bench_cluster(const std::string& program, uint32_t nodes, uint32_t devices_a_node, const detector_settings& how);
  ~bench_cluster();

  const std::string& where() const { return where_; }
  uint32_t devices() const { return nodes_ * devices_a_node_; }
  uint32_t devices_a_node() const { return devices_a_node_; }
  uint32_t nodes() const { return nodes_; }
  silent_link& link() { return *link_; }

  pid_t coordinator() const { return coordinator_; }
  /// Of node `index`, from 0.
  pid_t node(uint32_t index) const { return processes_[index]; }
  /// Kills it, stopped or not, and starts it again under its name.
  void restart_node(uint32_t index);

private:
  pid_t start(std::vector<std::string> command) const;
  void start_node(uint32_t index);
  static void end(pid_t process);

  std::string program_;
  uint32_t nodes_, devices_a_node_;
  std::filesystem::path dir_;
  std::string where_;
  std::unique_ptr<silent_link> link_;
  pid_t coordinator_ = -1;
  std::vector<pid_t> processes_; ///< By node.
};

} // namespace ringmaster::bench
