#pragma once

#include "runtime/trust/record_mac.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sys/types.h>

namespace ringmaster {

/// A connection whose bytes can be read on the network, and not changed: records of at most 256 KiB and a little, each
/// after its length and tag. What is sent is not copied; what comes is given out when all of its record has come and
/// its tag is right. Functions as of tls_channel.
///
///   length 4 (little-endian), tag 16, the bytes; the tag is over length and bytes
class authenticated_records {
public:
  authenticated_records(const session_key& sends, const session_key& receives) : sends_(sends), receives_(receives) {}

  static constexpr size_t bytes_max = (256u << 10) + 1024; ///< A frame of a bulk connection and what goes with it.

  ssize_t send(int socket, std::span<const std::span<const std::byte>> parts);
  ssize_t receive_some(int socket, std::span<std::byte> to);
  bool has_more() const { return given_ < come_; }
  /// A record was not what its tag says.
  bool forged() const { return forged_; }

private:
  static constexpr size_t header_bytes = sizeof(uint32_t) + sizeof(record_mac::tag);
  using header = std::array<std::byte, header_bytes>;

  /// Makes the header of the next record. Returns false if there is nothing to send.
  bool start(std::span<const std::span<const std::byte>> parts);

  record_mac sends_, receives_;
  header out_{};
  size_t out_left_ = 0;  ///< Of the header that is being sent.
  size_t sent_left_ = 0; ///< Of the bytes after it.
  header in_{};
  size_t in_got_ = 0;
  std::vector<std::byte> record_;
  size_t got_ = 0;   ///< Of the record that comes.
  size_t come_ = 0;  ///< Its size, once all of it has come and is right.
  size_t given_ = 0; ///< To the caller.
  bool forged_ = false;
};

} // namespace ringmaster
