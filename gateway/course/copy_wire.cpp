#include "gateway/course/copy_wire.hpp"

#include <course.pb.h>
#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <string>

namespace ringmaster::gateway {

namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr uint32_t message_tag(int field) {
  return static_cast<uint32_t>(field) << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
}
constexpr uint32_t number_tag(int field) {
  return static_cast<uint32_t>(field) << 3 | WireFormatLite::WIRETYPE_VARINT;
}

/// Calls `take(tag)` for each field up to the present limit; it returns whether the field could be read.
template <class Take>
bool read_fields(CodedInputStream& in, Take take) {
  while (const auto tag = in.ReadTag())
    if (!take(tag))
      return false;
  return in.ConsumedEntireMessage();
}

/// Reads a message within the message.
template <class Take>
bool read_message(CodedInputStream& in, Take take) {
  uint32_t size = 0;
  if (!in.ReadVarint32(&size) || static_cast<int64_t>(size) > in.BytesUntilLimit())
    return false;
  const auto outer = in.PushLimit(static_cast<int>(size));
  const bool is_good = read_fields(in, take);
  in.PopLimit(outer);
  return is_good;
}

/// DeviceId or MemAddr.
bool read_value(CodedInputStream& in, uint64_t& value) {
  return read_message(in, [&](uint32_t tag) {
    return tag == number_tag(1) ? in.ReadVarint64(&value) : WireFormatLite::SkipField(&in, tag);
  });
}

bool read_data(CodedInputStream& in, byte_block& data) {
  uint32_t size = 0;
  if (!in.ReadVarint32(&size) || static_cast<int64_t>(size) > in.BytesUntilLimit())
    return false; // nothing is reserved for bytes that have not come
  std::byte* bytes = nullptr;
  data = byte_block::uninitialized(size, bytes);
  return in.ReadRaw(bytes, static_cast<int>(size));
}

bool read_to_device(CodedInputStream& in, course_copy& result) {
  using fields = course::MemcpyHostToDeviceRequest;
  result = {};
  result.to_device = true;
  const bool is_good = read_message(in, [&](uint32_t tag) {
    switch (tag) {
      case message_tag(fields::kHostSrcDataFieldNumber): return read_data(in, result.data);
      case message_tag(fields::kDstDeviceIdFieldNumber): return read_value(in, result.device);
      case message_tag(fields::kDstMemAddrFieldNumber): return read_value(in, result.address);
      default: return WireFormatLite::SkipField(&in, tag);
    }
  });
  result.bytes = result.data.size();
  return is_good;
}

bool read_to_host(CodedInputStream& in, course_copy& result) {
  using fields = course::MemcpyDeviceToHostRequest;
  result = {};
  return read_message(in, [&](uint32_t tag) {
    switch (tag) {
      case message_tag(fields::kSrcDeviceIdFieldNumber): return read_value(in, result.device);
      case message_tag(fields::kSrcMemAddrFieldNumber): return read_value(in, result.address);
      case number_tag(fields::kNumBytesFieldNumber): return in.ReadVarint64(&result.bytes);
      default: return WireFormatLite::SkipField(&in, tag);
    }
  });
}

} // namespace

caf::expected<course_copy> read_copy(grpc::ByteBuffer& request) {
  using fields = course::MemcpyRequest;
  grpc::ProtoBufferReader reader{&request};
  CodedInputStream in{&reader};
  in.PushLimit(static_cast<int>(request.Length()));
  course_copy result;
  bool has_direction = false;
  const bool is_good = read_fields(in, [&](uint32_t tag) {
    has_direction = has_direction || tag == message_tag(fields::kHostToDeviceFieldNumber)
                    || tag == message_tag(fields::kDeviceToHostFieldNumber);
    switch (tag) {
      case message_tag(fields::kHostToDeviceFieldNumber): return read_to_device(in, result);
      case message_tag(fields::kDeviceToHostFieldNumber): return read_to_host(in, result);
      default: return WireFormatLite::SkipField(&in, tag);
    }
  });
  if (!is_good)
    return invalid("the request is no MemcpyRequest");
  if (!has_direction)
    return invalid("Memcpy names neither hostToDevice nor deviceToHost");
  return result;
}

received_data::received_data(const grpc::ByteBuffer& message, size_t begin, size_t bytes) : size_(bytes) {
  std::vector<grpc::Slice> all;
  const auto dumped = message.Dump(&all);
  ensure(dumped.ok(), "a message that has been read has slices");
  auto left = bytes;
  for (auto& slice : all) {
    const auto skipped = std::min(begin, slice.size());
    const auto used = std::min(slice.size() - skipped, left);
    if (used > 0)
      slices_.push_back(slice.sub(skipped, skipped + used));
    begin -= skipped;
    left -= used;
  }
  ensure(left == 0, "the data lie within the message");
}

std::string received_data::take(size_t bytes) {
  std::string result;
  result.reserve(std::min(bytes, size_));
  while (result.size() < bytes && !slices_.empty()) {
    auto& front = slices_.front();
    const auto used = std::min(bytes - result.size(), front.size());
    result.append(reinterpret_cast<const char*>(front.begin()), used);
    if (used == front.size())
      slices_.pop_front();
    else
      front = front.sub(used, front.size());
  }
  size_ -= result.size();
  return result;
}

caf::expected<course_chunk> read_chunk(grpc::ByteBuffer& request) {
  using fields = course::DataChunk;
  grpc::ProtoBufferReader reader{&request};
  CodedInputStream in{&reader};
  in.PushLimit(static_cast<int>(request.Length()));
  course_chunk result;
  size_t begin = 0;
  uint32_t size = 0;
  auto find_data = [&] {
    if (!in.ReadVarint32(&size) || static_cast<int64_t>(size) > in.BytesUntilLimit())
      return false;
    begin = static_cast<size_t>(in.CurrentPosition());
    return in.Skip(static_cast<int>(size));
  };
  const bool is_good = read_fields(in, [&](uint32_t tag) {
    switch (tag) {
      case message_tag(fields::kDataFieldNumber): return find_data();
      case message_tag(fields::kStreamIdFieldNumber): return read_value(in, result.stream.emplace(0));
      case number_tag(fields::kStreamIdFieldNumber): return in.ReadVarint64(&result.stream.emplace(0));
      default: return WireFormatLite::SkipField(&in, tag);
    }
  });
  if (!is_good)
    return invalid("the request is no DataChunk");
  result.data = received_data{request, begin, size};
  return result;
}

grpc::ByteBuffer copied_to_device() {
  course::MemcpyResponse response;
  response.mutable_hosttodevice()->set_success(true);
  const grpc::Slice bytes{response.SerializeAsString()};
  return {&bytes, 1};
}

grpc::ByteBuffer copied_to_host(const std::vector<byte_block>& parts) {
  size_t size = 0;
  for (auto& part : parts)
    size += part.size();
  uint8_t header[32];
  const auto data_size = static_cast<uint32_t>(size);
  auto inner = [&](uint8_t* to) {
    to = CodedOutputStream::WriteTagToArray(message_tag(course::MemcpyDeviceToHostResponse::kDstDataFieldNumber), to);
    return CodedOutputStream::WriteVarint32ToArray(data_size, to);
  };
  const auto inner_size = static_cast<uint32_t>(inner(header) - header) + data_size;
  auto* end = CodedOutputStream::WriteTagToArray(message_tag(course::MemcpyResponse::kDeviceToHostFieldNumber), header);
  end = inner(CodedOutputStream::WriteVarint32ToArray(inner_size, end));
  std::vector<grpc::Slice> slices{grpc::Slice{header, static_cast<size_t>(end - header)}};
  for (auto& part : parts)
    if (part.size() > 0)
      slices.emplace_back(
        const_cast<std::byte*>(part.data()), part.size(), [](void* block) { delete static_cast<byte_block*>(block); },
        new byte_block{part});
  return {slices.data(), slices.size()};
}

} // namespace ringmaster::gateway
