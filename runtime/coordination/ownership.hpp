#pragma once

#include "messages/ids.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ringmaster {

/// Whoever asks the coordinator for something that goes with him.
using client_id = strong_id<struct client_id_tag>;

/// A range of a device's memory, by its first address.
struct owned_range {
  device_id device;
  uint64_t address = 0;

  friend auto operator<=>(const owned_range&, const owned_range&) = default;
};

/// What clients have made and nobody has given back: what is to be given back when they are gone. The coordinator's; it
/// does nothing by itself. Whatever is here has one owner, and who owns nothing is not known.
class ownership {
public:
  struct belongings {
    std::set<communicator_id> communicators;
    std::set<owned_range> ranges;
  };

  void made(client_id owner, communicator_id what);
  void allocated(client_id owner, owned_range what);

  // It has been given back, whoever did so.
  void ended(communicator_id what);
  void freed(owned_range what);
  void gone(device_id device);

  /// Whose it is; none where it outlives whoever made it.
  std::optional<client_id> owner_of(communicator_id what) const;
  bool owns_anything(client_id owner) const { return owners_.count(owner) != 0; }
  /// The client is gone: what it leaves behind, which from now on is nobody's.
  belongings take(client_id owner);

private:
  void drop_if_empty(client_id owner);

  std::map<client_id, belongings> owners_; ///< None with nothing.
  std::map<communicator_id, client_id> communicators_;
  std::map<owned_range, client_id> ranges_;
};

} // namespace ringmaster
