#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ringmaster {

/// Keeps this process alive when it touches a mapped file that was truncated, or whose disk is full. The
/// system answers such an access with SIGBUS, which ends a process; here the whole range is then replaced by zeros that
/// belong to no file, the access goes on, and `struck` says that what is there means nothing. The handler is installed
/// with the first guard; a SIGBUS of other memory goes to the one that was there before.
class mapping_guard {
public:
  /// [start, start + bytes) is a mapping.
  mapping_guard(std::byte* start, uint64_t bytes);
  mapping_guard(const mapping_guard&) = delete;
  mapping_guard& operator=(const mapping_guard&) = delete;
  ~mapping_guard() { end(); }

  /// Before the mapping goes.
  void end() noexcept;

  bool struck() const noexcept;

private:
  size_t slot_;
};

} // namespace ringmaster
