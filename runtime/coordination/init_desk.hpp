#pragma once

#include "runtime/coordination/device_registry.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace ringmaster {

/// CommInit calls that wait until each device that they would take has given a sign of life. A hung device that is in
/// no communicator is noticed nowhere else. The desk sends nothing: the caller chooses devices, and `next` decides what
/// happens with them.
///
///   choosing --ranks that have not answered--> asking --all have answered, have died or were given up--> choosing
///      |---too few devices, and one was given up--> waiting --a device joins, or the limit passes--> choosing
///      |---all ranks have answered--> made
///      `---any other problem--> refused
class init_desk {
public:
  using number = uint64_t; ///< Of a call.

  /// Ask these devices for a sign of life. Each must lead to one call of `heard`, `lost`, `given_up` or `not_asked`.
  struct ask {
    device_ids devices;
  };
  /// Wait for a device that joins.
  struct wait {
    bool starts_timer = false; ///< The first time: call `expired` after the limit.
  };
  /// Make the communicator. The call has left the desk.
  struct make {
    device_ids ranks;
  };
  /// Refuse the call, which has left the desk.
  struct refuse {
    caf::error problem;
  };
  using step = std::variant<ask, wait, make, refuse>;

  void begin(number who);
  bool has(number who) const { return calls_.contains(who); }

  /// Precondition: no device is being asked for this call. `ranks`: the devices that it would take now, or the error.
  step next(number who, const caf::expected<device_ids>& ranks);

  // The outcome of asking one device. Each returns whether it was the last: then call `next`.
  bool heard(number who, device_id from);                ///< It lives.
  bool lost(number who);                                 ///< It died while it was asked.
  bool given_up(number who, const std::string& why);     ///< It was silent. `why` ends up in a refusal.
  bool not_asked(number who, const caf::error& problem); ///< It could not be asked: the call is refused.

  /// The limit for a device to join has passed. Returns whether to call `next`.
  bool expired(number who);
  /// Calls that wait for a device to join.
  std::vector<number> waiting() const;
  size_t size() const { return calls_.size(); }

private:
  enum class phase : uint8_t { choosing, asking, waiting };

  struct call {
    phase now = phase::choosing;
    std::set<device_id> living; ///< Devices that have answered.
    size_t asked = 0;           ///< Devices that have not answered yet.
    std::string silent;         ///< Devices that were given up, for people; a semicolon before each.
    caf::error problem;         ///< Why a device could not be asked.
    bool has_timer = false;
    bool expired = false;
  };

  call& asking(number who);
  /// One device less to wait for. Returns whether it was the last.
  bool settled(call& x);

  std::map<number, call> calls_;
};

} // namespace ringmaster
