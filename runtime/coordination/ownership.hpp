#pragma once

#include "messages/ids.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ringmaster {

/// A client of the coordinator that owns something.
using client_id = strong_id<struct client_id_tag>;

/// A range of a device's memory, by its first address.
struct owned_range {
  device_id device;
  uint64_t address = 0;

  friend auto operator<=>(const owned_range&, const owned_range&) = default;
};

/// What clients own: what is destroyed or freed when they end. Everything in it has one owner, and every client in it
/// owns something.
class ownership {
public:
  struct belongings {
    std::set<communicator_id> communicators;
    std::set<owned_range> ranges;
  };

  void made(client_id owner, communicator_id what);
  void allocated(client_id owner, owned_range what);

  // It was destroyed or freed, or its device is gone.
  void ended(communicator_id what);
  void freed(owned_range what);
  void gone(device_id device);

  /// The owner; none if it outlives the client that made it.
  std::optional<client_id> owner_of(communicator_id what) const;
  bool owns_anything(client_id owner) const { return owners_.count(owner) != 0; }
  /// The client has ended: takes what it owned out of the records.
  belongings take(client_id owner);

private:
  void drop_if_empty(client_id owner);

  std::map<client_id, belongings> owners_; ///< None with nothing.
  std::map<communicator_id, client_id> communicators_;
  std::map<owned_range, client_id> ranges_;
};

} // namespace ringmaster
