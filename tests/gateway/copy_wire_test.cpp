#include "gateway/course/copy_wire.hpp"
#include "messages/errc.hpp"
#include "tests/gateway/course_client.hpp"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::gateway;
using namespace ringmaster::test;

namespace {

/// In slices of `slice_bytes`, as bytes come from a network.
grpc::ByteBuffer buffer_of(const std::string& text, size_t slice_bytes = 7) {
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; i < text.size(); i += slice_bytes)
    slices.emplace_back(text.substr(i, slice_bytes));
  return {slices.data(), slices.size()};
}

std::string text_of(const byte_block& x) {
  return {reinterpret_cast<const char*>(x.data()), x.size()};
}

course::MemcpyResponse parsed(grpc::ByteBuffer x) {
  course::MemcpyResponse result;
  grpc::ProtoBufferReader reader{&x};
  REQUIRE(result.ParseFromZeroCopyStream(&reader));
  return result;
}

} // namespace

TEST_CASE("copy wire: a copy to the device has its bytes in a block") {
  std::string data(1000, 'x');
  data[999] = 'y';
  auto buffer = buffer_of(course_client::to_device(3, 0x1000, data).SerializeAsString());
  auto copy = read_copy(buffer);
  REQUIRE(copy);
  CHECK(copy->to_device);
  CHECK(copy->device == 3);
  CHECK(copy->address == 0x1000);
  CHECK(copy->bytes == 1000);
  CHECK(text_of(copy->data) == data);
}

TEST_CASE("copy wire: a copy to the host, and fields that are absent") {
  auto buffer = buffer_of(course_client::to_host(5, uint64_t{1} << 60, uint64_t{1} << 50).SerializeAsString());
  auto copy = read_copy(buffer);
  REQUIRE(copy);
  CHECK_FALSE(copy->to_device);
  CHECK(copy->device == 5);
  CHECK(copy->address == uint64_t{1} << 60);
  CHECK(copy->bytes == uint64_t{1} << 50);
  course::MemcpyRequest empty;
  empty.mutable_hosttodevice();
  buffer = buffer_of(empty.SerializeAsString());
  copy = read_copy(buffer);
  REQUIRE(copy);
  CHECK(copy->to_device);
  CHECK(copy->bytes == 0);
}

TEST_CASE("copy wire: fields of other versions are skipped, and the last direction counts") {
  const auto request = course_client::to_host(1, 2, 3).SerializeAsString();
  const auto other = course_client::to_device(1, 2, "abc").SerializeAsString();
  const std::string unknown{"\x9a\x06\x02hi\x98\x06\x05", 8}; // field 99: text; field 99: a number
  auto buffer = buffer_of(unknown + other + request);
  auto copy = read_copy(buffer);
  REQUIRE(copy);
  CHECK_FALSE(copy->to_device);
  CHECK(copy->bytes == 3);
  CHECK(copy->data.size() == 0);
}

TEST_CASE("copy wire: every beginning of a request, and every changed byte of it, is read or refused") {
  const auto whole = course_client::to_device(300, 0x12345678, std::string(40, 'z')).SerializeAsString();
  size_t refused = 0;
  for (size_t size = 1; size < whole.size(); ++size) {
    auto buffer = buffer_of(whole.substr(0, size));
    const auto copy = read_copy(buffer);
    refused += !copy && code_of(copy.error()) == errc::invalid_argument ? 1 : 0;
  }
  CHECK(refused == whole.size() - 1);
  for (size_t i = 0; i < whole.size(); ++i)
    for (int value = 0; value < 256; ++value) {
      auto changed = whole;
      changed[i] = static_cast<char>(value);
      auto buffer = buffer_of(changed);
      const auto copy = read_copy(buffer);
      CHECK((!copy || copy->data.size() <= whole.size()));
    }
}

TEST_CASE("copy wire: a chunk's stream is a message or a number, and the last of several fields counts") {
  course::DataChunk chunk;
  chunk.set_data(std::string(100, 'x') + "end");
  auto read = [](const std::string& bytes) {
    auto buffer = buffer_of(bytes);
    auto result = read_chunk(buffer);
    REQUIRE(result);
    return std::move(*result);
  };
  auto found = read(chunk.SerializeAsString());
  CHECK_FALSE(found.stream);
  CHECK(found.data.size() == 103);
  CHECK(found.data.take(50) == std::string(50, 'x'));
  CHECK(found.data.take(52) == std::string(50, 'x') + "en");
  CHECK(found.data.take(52) == "d");
  CHECK(found.data.size() == 0);
  CHECK(found.data.take(1).empty());
  chunk.mutable_streamid()->set_value(uint64_t{1} << 50);
  CHECK(read(chunk.SerializeAsString()).stream == uint64_t{1} << 50);
  CHECK(read(chunk.SerializeAsString() + "\x10\x07").stream == 7);
  course::DataChunk second;
  second.set_data("other");
  found = read(chunk.SerializeAsString() + second.SerializeAsString());
  CHECK(found.stream == uint64_t{1} << 50);
  CHECK(found.data.take(100) == "other");
  CHECK(read("").data.size() == 0);
  CHECK(read(std::string{"\x9a\x06\x02hi", 5}).data.size() == 0); // a field of another version
  const auto whole = chunk.SerializeAsString();
  for (size_t size = 1; size < whole.size(); ++size) {
    auto buffer = buffer_of(whole.substr(0, size));
    const auto cut = read_chunk(buffer);
    CHECK((!cut ? code_of(cut.error()) == errc::invalid_argument : cut->data.size() == 103 && !cut->stream));
  }
}

TEST_CASE("copy wire: a chunk's data are not copied, and what is taken of them is freed") {
  static size_t freed;
  freed = 0;
  constexpr size_t slices_count = 10, slice_bytes = 1000;
  std::string data(slices_count * slice_bytes, 'x');
  const std::string header{"\x0a\x90\x4e", 3}; // field 1 with 10,000 bytes
  std::vector<grpc::Slice> slices{grpc::Slice{header}};
  for (size_t i = 0; i < slices_count; ++i)
    slices.emplace_back(data.data() + i * slice_bytes, slice_bytes, [](void*) { ++freed; });
  grpc::ByteBuffer buffer{slices.data(), slices.size()};
  slices.clear();
  auto chunk = read_chunk(buffer);
  REQUIRE(chunk);
  buffer.Clear();
  CHECK(freed == 0);
  CHECK(chunk->data.take(2 * slice_bytes + 1).size() == 2 * slice_bytes + 1);
  CHECK(freed == 2);
  CHECK(chunk->data.take(data.size()).size() == 8 * slice_bytes - 1);
  CHECK(freed == slices_count);
}

TEST_CASE("copy wire: neither direction") {
  auto none = buffer_of("");
  CHECK(code_of(read_copy(none).error()) == errc::invalid_argument);
}

TEST_CASE("copy wire: answers are those of the generated parser") {
  CHECK(parsed(copied_to_device()).hosttodevice().success());
  CHECK(parsed(copied_to_host({})).has_devicetohost());
  const auto one = byte_block::of(std::vector<char>(300, 'a')), two = byte_block::of(std::vector<char>{'b', 'c'});
  CHECK(parsed(copied_to_host({one, byte_block{}, two})).devicetohost().dstdata() == std::string(300, 'a') + "bc");
}
