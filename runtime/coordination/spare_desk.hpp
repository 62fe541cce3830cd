#pragma once

#include "runtime/coordination/device_registry.hpp"

#include <caf/error.hpp>

namespace ringmaster {

/// Requests for spares: which device replaces a lost one, and what happens to a request whose device dies or refuses
/// its inputs. The desk takes devices in the registry and gives them back, and sends nothing: after every event it says
/// what to do for a request.
///
///   waiting --device free--> restoring --all copies made, or the host has not all--> handed over
///     ▲  └──time over──> refused         │
///     └── it died, or refused a copy ────┘
class spare_desk {
public:
  using number = uint64_t;

  struct step {
    enum class kind {
      wait,      ///< Nothing, for now.
      restore,   ///< Copy the inputs to `device`, which has been taken; then say `restoring`.
      hand_over, ///< Answer with `device`; `problem`: why it does not have the inputs.
      refuse     ///< Answer that there is none: `problem`.
    };
    kind what = kind::wait;
    device_id device;
    caf::error problem;
  };

  explicit spare_desk(device_registry& devices) : devices_(devices) {}

  void asked(number id, proto::SpareRequest request);
  bool has(number id) const { return searches_.contains(id); }
  const proto::SpareRequest& request(number id) const;
  /// Those that wait for a device: call `next` when one has joined or is free, or a communicator has ended.
  std::vector<number> waiting() const;

  /// For one that is `waiting`, or has just asked. `wanted`: its communicator is alive.
  step next(number id, bool wanted);
  /// Its limit has passed: it no longer waits for a device.
  step expired(number id, bool wanted);
  /// `copies` copies are under way to the device; `missing`: why the host has not all inputs, if so.
  step restoring(number id, size_t copies, caf::error missing, bool wanted);
  /// One of them has ended. `problem`: none, if it succeeded.
  step copied(number id, caf::error problem, bool wanted);
  /// The answer has been given.
  void answered(number id);

private:
  struct search {
    proto::SpareRequest request;
    std::set<device_id> tried;
    device_id device; ///< Whose inputs are being restored; 0: none has been found.
    size_t copies_pending = 0;
    bool restorable = true;                                      ///< The host has all inputs.
    caf::error problem;                                          ///< The first, of this device.
    std::optional<std::pair<device_id, caf::error>> second_best; ///< It lives, but refused a copy.
    bool expired = false;
  };

  device_id free_device(const search& x) const;
  step nobody(search& x) const;
  /// All copies to the device have ended.
  step restored(number id, search& x, bool wanted);

  device_registry& devices_;
  std::map<number, search> searches_;
};

} // namespace ringmaster
