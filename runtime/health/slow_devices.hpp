#pragma once

#include "messages/ids.hpp"
#include "messages/types.pb.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace ringmaster {

/// Which devices of a communicator work much more slowly than the others ("stragglers"). Ranks of a collective wait for
/// each other, so all of them take as long as the slowest; what differs is how long each has owed the next move
/// (`DeviceWork.own_ns`). A device is slow if within the last `window`, in which operations were in flight all the
/// time:
///
/// - it owed the next move for at least `share_min` of the time, so that others waited for it, and
/// - it owed it `slow_from` times as long as the median of the others: in all, and also for each step and for each
/// byte,
///   since a root, or a rank with larger blocks, has more to do and is not slow.
///
/// It is slow no longer when one of these is not true for `slow_below` and half of `share_min`. Pure: the caller passes
/// the time in.
class slow_devices {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::nanoseconds;

  static constexpr std::chrono::milliseconds window{3000};
  static constexpr std::chrono::milliseconds gap_max{1000}; ///< Without an answer the observation starts again.
  static constexpr double share_min = 0.25;
  static constexpr double slow_from = 5, slow_below = 4;
  static constexpr double factor_max = 1000; ///< Reported if the others have next to nothing to do.

  /// A device has answered. `done`: in this communicator since it became a member; if it is less than before, the
  /// device counts anew.
  void heard(device_id device, const proto::DeviceWork& done, time_point now);
  void forget(device_id device) { devices_.erase(device); }

  struct change {
    device_id device;
    bool is_slow = false; ///< From now on.
    proto::Slowness how;
  };
  /// Judges the devices; call it at each tick. Returns those that have become slow, or are slow no longer.
  std::vector<change> look(const std::vector<device_id>& devices, time_point now);

  /// Of a slow device, as of the last look; null: it is not slow.
  const proto::Slowness* slowness(device_id device) const;

private:
  struct observation {
    time_point when;
    uint64_t own_ns = 0, steps = 0, bytes = 0;
  };
  struct watched {
    std::deque<observation> lately; ///< Of one window and the one before it; by time.
    bool is_slow = false;
    proto::Slowness how;
  };
  /// In the last window.
  struct work {
    device_id device;
    double own_ns = 0, per_step = 0, per_byte = 0; ///< 0 per step or byte: it had none.
  };

  std::map<device_id, watched> devices_;
};

/// "12 times slower than the others: it owed the next move for 2.7 s of 3.0 s, they for 0.2 s in the median"
std::string text_of(const proto::Slowness& x);

} // namespace ringmaster
