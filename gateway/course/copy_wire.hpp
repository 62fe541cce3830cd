#pragma once

#include "messages/byte_block.hpp"

#include <caf/expected.hpp>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
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

/// Bytes of a message, in the slices in which gRPC has received them. Taking bytes frees their slices.
class received_data {
public:
  received_data() = default;
  /// The bytes [begin, begin + bytes) of the message, which must have them. Nothing is copied.
  received_data(const grpc::ByteBuffer& message, size_t begin, size_t bytes);

  size_t size() const noexcept { return size_; }
  /// Removes the first `bytes`, or all if there are fewer, and returns them.
  std::string take(size_t bytes);

private:
  std::deque<grpc::Slice> slices_;
  size_t size_ = 0;
};

/// A DataChunk.
struct course_chunk {
  std::optional<uint64_t> stream; ///< Of its field 2, a message or a number.
  received_data data;
};

/// Reads a DataChunk, whose data stay where gRPC has put them. Errors: invalid_argument.
caf::expected<course_chunk> read_chunk(grpc::ByteBuffer& request);

} // namespace ringmaster::gateway
