#pragma once

#include <array>

namespace ringmaster {

/// File descriptors held back for RocksDB. When it gets none for the next file of its log, the process aborts as soon
/// as the database is used or closed, so it must not be touched then.
class descriptor_reserve {
public:
  static constexpr int count
    = 48; ///< Log, manifest, lock and mark, and the tables that RocksDB keeps open between merges.

  descriptor_reserve() { held_.fill(-1); }
  descriptor_reserve(const descriptor_reserve&) = delete;
  descriptor_reserve& operator=(const descriptor_reserve&) = delete;
  ~descriptor_reserve() { release(); }

  /// Opens the descriptors that it does not hold yet. Returns whether it holds all of them.
  bool fill();
  /// Whether the process could open a few more now. Requires a filled reserve.
  bool has_more() const;
  void release();

private:
  std::array<int, count> held_;
};

} // namespace ringmaster
