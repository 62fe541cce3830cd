#pragma once

#include "messages/ids.hpp"
#include "runtime/coordination/ownership.hpp"
#include "runtime/trust/credentials.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace ringmaster {

/// The process that calls the coordinator.
struct calling_process {
  peer_identity who = {role::member};
  std::string address; ///< Of its connection; empty: it is the coordinator's own process.
  std::string process; ///< Its id in CAF's protocol, as text.

  /// Whether it may use only what is its own.
  bool is_confined() const { return who.as == role::client || who.as == role::rank; }
  /// Whom what it makes belongs to: "name alice", so that all processes with this name may use it, or "process ID".
  /// Empty: the cluster, whose own processes and operators may use it.
  std::string maker() const;
};

/// What may be used by whom: communicators by those that made them, and the memory of their devices. Another client's
/// devices are the ones in its communicators; of other devices, its memory is what it has allocated there. A rank may
/// use, besides, the devices of its own process and the communicators that these are in.
class access_rules {
public:
  /// A device as the registry knows it.
  struct device_place {
    std::set<communicator_id> communicators;
    std::string process; ///< That it is in.
  };

  // -- what there is --

  void made(communicator_id what, std::string maker);
  void ended(communicator_id what) { makers_.erase(what); }
  void allocated(owned_range what, uint64_t bytes, std::string maker);
  void freed(owned_range what);
  void gone(device_id device);

  // -- what is allowed --

  /// `has_own_device`: whether one of its devices is in the calling process. A communicator that has ended may be
  /// named by all.
  bool may_use(const calling_process& x, communicator_id what, bool has_own_device) const;
  bool may_use(const calling_process& x, const device_place& what) const;
  /// Whether no one else has allocated any of these bytes.
  bool may_use(const calling_process& x, owned_range what, uint64_t bytes) const;

private:
  struct allocation {
    uint64_t bytes;
    std::string maker;
  };

  std::map<communicator_id, std::string> makers_; ///< Those that are alive.
  std::map<owned_range, allocation> allocations_; ///< Of devices that are in the cluster.
};

} // namespace ringmaster
