#pragma once

#include "messages/byte_block.hpp"
#include "messages/ids.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace ringmaster {

/// Remembers which bytes of device memory the host has copied in and what they were, so that a spare device can be
/// given a lost device's input. It shares the host's blocks and copies nothing. A byte is remembered until the device
/// changes it, the host copies to it again, or the blocks held grow beyond a limit. One address space a device; ranges
/// must lie within a device's memory, as device_memory checked. Not thread-safe.
class host_copies {
public:
  /// The bytes [offset, offset + bytes) of `block` are what is at `address`.
  struct piece {
    uint64_t address = 0;
    byte_block block;
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  /// `bytes_max`: of the blocks held. A block counts once, however many devices have it or a part of it,
  /// and whole, however little of it is still remembered. Beyond the limit the oldest copies are dropped.
  explicit host_copies(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  /// The host has copied `block` to `address`. Replaces what was known of that range.
  void remember(device_id device, uint64_t address, byte_block block);
  /// The same of the block's bytes [offset, offset + bytes); the whole block is held.
  void remember_part(device_id device, uint64_t address, byte_block block, uint64_t offset, uint64_t bytes);

  /// The host is about to copy to the range: until the device answers it is unknown what the operations before it have
  /// read. Returns the copy's number, for `copied`.
  uint64_t copying(device_id device, uint64_t address, uint64_t bytes);
  /// The copy has been made, or has failed (an empty block). Remembers it, unless what was called after it changes its
  /// range too.
  void copied(uint64_t number, byte_block block);

  /// A result has changed the range; copies under way come after it.
  void overwritten(device_id device, uint64_t address, uint64_t bytes);
  /// A device copy or a receive has been called that will change the range, after all copies under way.
  void will_change(device_id device, uint64_t address, uint64_t bytes);

  /// Pieces that cover the range exactly, by address; none for an empty range. Errors: invalid_argument where the range
  /// wraps around; device_lost where a part cannot be given back: the text names the first such sub-range and whether
  /// it was never copied from the host, was overwritten since, or was dropped for the limit.
  caf::expected<std::vector<piece>> find(device_id device, uint64_t address, uint64_t bytes) const;

  /// The device is gone: forgets its address space.
  void forget(device_id device);

  /// Bytes of the blocks held; at most `bytes_max`.
  uint64_t held_bytes() const noexcept { return held_bytes_; }

private:
  enum class fate : uint8_t { kept, overwritten, dropped };

  /// What became of some bytes the host has once copied; its start is the key. Bytes in no segment were never copied.
  struct segment {
    uint64_t end = 0;
    fate state = fate::kept;
    uint64_t copy = 0; ///< Its number in `copies_`; 0 where not kept.
  };
  using segments = std::map<uint64_t, segment>;

  /// One call to remember, for as long as a byte of it is kept.
  struct copy {
    device_id device;
    uint64_t address = 0;
    byte_block block;
    uint64_t offset = 0; ///< In the block, of what is at `address`.
    uint64_t bytes = 0;
    uint64_t kept_bytes = 0;
  };

  /// A copy under way.
  struct target {
    device_id device;
    uint64_t address = 0;
    uint64_t bytes = 0;
  };

  static segments::iterator split(segments& known, uint64_t address);
  static void merge(segments& known, uint64_t begin, uint64_t end);
  static const char* reason(fate state);
  void release(const segment& part, uint64_t start);
  void drop_oldest();

  uint64_t bytes_max_;
  uint64_t held_bytes_ = 0;
  uint64_t last_copy_ = 0;
  uint64_t last_under_way_ = 0;
  std::map<uint64_t, target> under_way_;
  std::unordered_map<device_id, segments> devices_;
  std::map<uint64_t, copy> copies_; // by age
  /// Copies that share a block, and bytes of the largest.
  struct holding {
    uint64_t copies = 0, bytes = 0;
  };
  std::unordered_map<const std::byte*, holding> holders_; // by where the block begins
};

} // namespace ringmaster
