#pragma once

#include "client/cluster.hpp"
#include "messages/ids.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/memory/memory_directory.hpp"

#include <caf/actor_system.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace ringmaster {

/// A node that this process hosts for a coordinator, with the devices of the configuration. The destructor makes it
/// leave.
class own_node {
public:
  /// What the process does: it only hosts devices, or it also runs a rank, so that other clients must not drain it.
  enum class purpose : uint8_t { hosts, plays_rank };

  /// Starts the node, with a listening port for other nodes if it `listens`, and joins the coordinator, or waits for
  /// one that lists it where `coordinator` is null. It has not joined when this returns. `job`: of a rank,
  /// launched_process::identity. Errors: those of the memory directory; io_error where it cannot listen;
  /// invalid_argument for an unknown coordinator host.
  static caf::expected<std::unique_ptr<own_node>> start(caf::actor_system& system, const options& opts,
                                                        const coordinator_actor& coordinator, bool listens,
                                                        purpose why = purpose::hosts, const std::string& job = {});
  ~own_node();
  own_node(const own_node&) = delete;
  own_node& operator=(const own_node&) = delete;

  const node_actor& handle() const noexcept { return handle_; }
  const std::string& name() const noexcept { return name_; }
  /// Whether the coordinator has accepted it.
  bool has_joined() const { return *joined_; }
  /// The address at which other nodes reach it.
  const std::string& address() const noexcept { return address_; }
  uint16_t port() const noexcept { return port_; }

  /// Waits until its devices have joined. Errors: timed_out; the reason why the node has stopped, such as a name that
  /// another node has.
  caf::expected<std::vector<device_id>> await_devices(const coordinator_actor& coordinator, caf::timespan limit);

  /// Its devices among those of the cluster; fewer than announced while some restart.
  std::vector<device_id> devices_in(const proto::ClusterInfo& cluster) const;

  /// The memory of a device of this node, mapped a second time for the rank of this process. Errors: unreachable,
  /// io_error.
  caf::expected<std::shared_ptr<mapped_memory>> map_memory(const gpu_sim::DeviceMetadata& device) const;

private:
  own_node(caf::actor_system& system, std::shared_ptr<memory_directory> memory)
    : system_(system), memory_(std::move(memory)) {}

  caf::error listen(const options& opts);

  caf::actor_system& system_;
  std::shared_ptr<memory_directory> memory_; ///< Of its devices.
  node_actor handle_;
  std::shared_ptr<const std::atomic<bool>> joined_;
  std::string name_;
  std::string address_;
  uint16_t port_ = 0; ///< 0: nowhere.
};

} // namespace ringmaster
