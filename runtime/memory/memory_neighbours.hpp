#pragma once

#include "runtime/memory/mapped_memory.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

namespace ringmaster {

/// The memories of other processes' devices, mapped once by a process and kept while they may be used:
/// mapping a file again costs a fault for each of its pages. One whose device is gone is let go of: at the word of
/// those that have noticed, or else when its file is found to be removed. Thread-safe.
class memory_neighbours {
public:
  /// For all of them. A communicator's process writes, for it moves data for all ranks at once; all others read.
  /// `look_every`: files that were removed are looked for when another one comes, but not more often than that.
  explicit memory_neighbours(mapped_memory::access what,
                             std::chrono::steady_clock::duration look_every = std::chrono::seconds{1})
    : access_(what), look_every_(look_every) {}

  /// Errors: unreachable, with the reason; it is not tried again at once.
  caf::expected<std::shared_ptr<mapped_memory>> find(const memory_place& place);
  /// Its device is gone. Those that still use the mapping keep it.
  void forget(const memory_place& place);

private:
  void forget_removed();

  mapped_memory::access access_;
  std::chrono::steady_clock::duration look_every_;
  std::chrono::steady_clock::time_point looked_;
  std::mutex mutex_;
  std::map<memory_place, caf::expected<std::shared_ptr<mapped_memory>>> known_;
  std::set<std::filesystem::path> settings_; ///< Directories, of one process each, that cannot be used: said once.
};

} // namespace ringmaster
