#pragma once

#include "messages/ids.hpp"
#include "messages/transfer.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace ringmaster {

/// Which devices' ranks wait for other ranks, in all communicators of a process: a communicator that misses a rank's
/// call can say where that rank waits instead. Thread-safe.
class waiting_ranks {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Entries older than `lifetime` do not count.
  explicit waiting_ranks(std::chrono::nanoseconds lifetime = std::chrono::milliseconds{500}) : lifetime_(lifetime) {}

  /// By device, what its rank has called and waits for: "all_reduce #17". Replaces what the communicator said before.
  void publish(communicator_id where, std::map<device_id, std::string> calls, time_point now);

  /// ", and waits in communicator 3 for all_reduce #17": in another communicator than this one. Empty: it does not.
  std::string elsewhere(device_id device, communicator_id here, time_point now) const;

private:
  struct entry {
    std::map<device_id, std::string> calls;
    time_point published_at;
  };

  std::chrono::nanoseconds lifetime_;
  mutable std::mutex mutex_;
  std::map<communicator_id, entry> entries_;
};

/// The host of each rank, as in `plan_request`: hosts are numbered in the order of their first ranks. Empty if all
/// ranks are on one host.
///
/// A host is a set of devices with a fast connection. With `share_memory` these are the devices of one kernel whose
/// memory files are in one file system, unlike those of containers. Otherwise, and for a device whose memory file is
/// not known, it is the process.
std::vector<uint32_t> rank_hosts(std::span<const device_handle> ranks, bool share_memory);

/// The same for any numbers: equal ones are a host.
std::vector<uint32_t> numbered_hosts(std::span<const uint32_t> by_rank);

} // namespace ringmaster
