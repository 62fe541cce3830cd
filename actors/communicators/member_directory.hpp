#pragma once

#include "actors/communicators/audience.hpp"
#include "actors/communicators/communicator_options.hpp"
#include "runtime/epochs/rank_history.hpp"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace ringmaster {

/// How a communicator reaches its members: the actors of each device, its memory, and the host that it lies on.
/// Monitors the devices, and counts the messages to relays and from them.
class member_directory {
public:
  member_directory(communicator_actor::pointer self, const communicator_options& options)
    : self_(self), options_(options) {}

  void add(device_id device, const device_handle& handle);
  /// An epoch is open over these ranks: other devices are forgotten. Returns those.
  std::vector<device_id> set_ranks(const std::vector<rank_device>& ranks);
  /// Before the communicator ends: devices and coordinator live on, and would keep the memory of all that have ever
  /// watched them.
  void stop_watching();

  const device_handle& handle_of(device_id device) const;
  /// In this order.
  device_handles handles_of(const std::vector<rank_device>& ranks) const;
  /// The device that the actor is; none: no member.
  std::optional<device_id> device_of(const caf::actor_addr& actor) const;
  /// The members of its process, itself included.
  std::vector<device_id> in_process_of(device_id device) const;
  /// The relays of other processes with these ranks, each once.
  std::vector<caf::strong_actor_ptr> relays_elsewhere(const std::vector<rank_device>& ranks) const;
  audience streams_of(const std::vector<device_id>& devices) const;
  audience devices_of(const std::vector<device_id>& devices) const;

  template <class T>
  void tell_streams(const std::vector<device_id>& devices, const T& what) {
    note_relayed(streams_of(devices).tell(what));
  }
  void note_relayed(size_t messages) { relayed_ += messages; }
  uint64_t relayed() const { return relayed_; }

  /// As this process sees it, where the device is another process's; null: out of reach, or of this process.
  std::shared_ptr<mapped_memory> memory_of(device_id device) const;
  /// This process may read and write the memories of all of these.
  bool all_in_reach(const std::vector<rank_device>& ranks) const;
  /// By rank of the latest `set_ranks`: the number of its host, as in `plan_request`; empty if all lie on one.
  const std::vector<uint32_t>& hosts() const { return hosts_; }

private:
  communicator_actor::pointer self_;
  const communicator_options& options_;
  std::map<device_id, device_handle> handles_;                   ///< Of members, and of spares that become members.
  std::map<device_id, std::shared_ptr<mapped_memory>> memories_; ///< Of other processes' devices, in reach.
  std::vector<uint32_t> hosts_;
  uint64_t relayed_ = 0;
};

} // namespace ringmaster
