#pragma once

#include "messages/byte_block.hpp"

#include <caf/expected.hpp>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <vector>

namespace ringmaster::gateway {

/// A MemcpyRequest, with its data in a block of its own. All numbers are the client's.
struct course_copy {
  bool to_device = false;
  uint64_t device = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  byte_block data; ///< To the device.
};

/// Reads a MemcpyRequest. Its data is copied once, which the generated parser would do twice. Errors: invalid_argument,
/// also for a request without a direction.
caf::expected<course_copy> read_copy(grpc::ByteBuffer& request);

/// The MemcpyResponse of a copy to a device.
grpc::ByteBuffer copied_to_device();
/// That of a copy to the host, with these parts of the data in order, which it keeps. Nothing is copied.
grpc::ByteBuffer copied_to_host(const std::vector<byte_block>& parts);

} // namespace ringmaster::gateway
