#pragma once

#include <array>

namespace ringmaster {

/// Descriptors that are kept for a moment in which others have taken all. Where RocksDB gets none for the next file of
/// its log, closing it ends the process, and so does opening it: it must not be touched then.
class descriptor_reserve {
public:
  static constexpr int count = 48; ///< Its log, manifest, lock and mark, and the tables that it keeps between merges.

  descriptor_reserve() { held_.fill(-1); }
  descriptor_reserve(const descriptor_reserve&) = delete;
  descriptor_reserve& operator=(const descriptor_reserve&) = delete;
  ~descriptor_reserve() { release(); }

  /// Takes those that it does not hold. Returns whether it holds all.
  bool fill();
  /// Whether there are some beside these, now.
  bool has_more() const;
  void release();

private:
  std::array<int, count> held_;
};

} // namespace ringmaster
