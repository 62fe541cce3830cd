#include "runtime/links/link_frames.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstring>

namespace ringmaster {

namespace {

constexpr uint64_t link_magic = 0x6b6e696c676e6972; // "ringlink"
constexpr uint32_t link_version = 1;

/// Writes numbers one after the other, or reads them.
class wire_numbers {
public:
  explicit wire_numbers(std::byte* at) : at_(at) {}

  void put(std::unsigned_integral auto x) {
    for (size_t i = 0; i < sizeof x; ++i)
      *at_++ = static_cast<std::byte>(x >> (8 * i));
  }

  template <std::unsigned_integral T>
  T take() {
    T result = 0;
    for (size_t i = 0; i < sizeof result; ++i)
      result |= static_cast<T>(std::to_integer<T>(*at_++)) << (8 * i);
    return result;
  }

private:
  std::byte* at_;
};

template <size_t Size>
wire_numbers numbers_of(std::array<std::byte, Size>& copy, std::span<const std::byte, Size> wire) {
  std::memcpy(copy.data(), wire.data(), Size);
  return wire_numbers{copy.data()};
}

} // namespace

std::array<std::byte, link_hello::wire_bytes> encode(const link_hello& x) {
  std::array<std::byte, link_hello::wire_bytes> result;
  wire_numbers to{result.data()};
  to.put(link_magic);
  to.put(link_version);
  to.put(uint32_t{0});
  to.put(x.process);
  return result;
}

std::array<std::byte, link_request::wire_bytes> encode(const link_request& x) {
  std::array<std::byte, link_request::wire_bytes> result;
  wire_numbers to{result.data()};
  to.put(static_cast<uint32_t>(x.what));
  to.put(uint32_t{x.checksums});
  to.put(x.id);
  to.put(x.key.channel);
  to.put(x.key.epoch.value);
  to.put(x.key.sequence.value);
  to.put(x.key.source);
  to.put(x.key.destination);
  to.put(x.key.index);
  to.put(x.unit);
  to.put(x.device.value);
  to.put(x.offset);
  to.put(x.bytes);
  to.put(uint64_t{0});
  return result;
}

std::array<std::byte, link_frame::wire_bytes> encode(const link_frame& x) {
  std::array<std::byte, link_frame::wire_bytes> result;
  wire_numbers to{result.data()};
  to.put(static_cast<uint32_t>(x.what));
  to.put(x.bytes);
  to.put(x.id);
  to.put(x.offset);
  to.put(x.checksum);
  return result;
}

caf::expected<link_hello> decode_hello(std::span<const std::byte, link_hello::wire_bytes> wire) {
  std::array<std::byte, link_hello::wire_bytes> copy;
  auto from = numbers_of(copy, wire);
  if (from.take<uint64_t>() != link_magic)
    return malformed("the first bytes are not those of a bulk connection of ringmaster");
  if (auto version = from.take<uint32_t>(); version != link_version)
    return make_error(errc::wrong_version,
                      fmt::format("it has version {} of the bulk connections' protocol, and this process version {}",
                                  version, link_version));
  from.take<uint32_t>();
  return link_hello{from.take<uint64_t>()};
}

caf::expected<link_request> decode_request(std::span<const std::byte, link_request::wire_bytes> wire) {
  std::array<std::byte, link_request::wire_bytes> copy;
  auto from = numbers_of(copy, wire);
  link_request result;
  auto what = from.take<uint32_t>();
  result.what = static_cast<link_request::kind>(what);
  if (result.what != link_request::kind::fetch && result.what != link_request::kind::cancel)
    return malformed(fmt::format("there is no request of kind {}", what));
  auto checksums = from.take<uint32_t>();
  result.checksums = checksums != 0;
  result.id = from.take<uint64_t>();
  if (checksums > 1 || result.id == 0)
    return malformed("a request has the id 0, or its checksum flag is neither 0 nor 1");
  result.key.channel = from.take<uint64_t>();
  result.key.epoch.value = from.take<uint64_t>();
  result.key.sequence.value = from.take<uint64_t>();
  result.key.source = from.take<uint32_t>();
  result.key.destination = from.take<uint32_t>();
  result.key.index = from.take<uint32_t>();
  result.unit = from.take<uint32_t>();
  result.device.value = from.take<uint64_t>();
  result.offset = from.take<uint64_t>();
  result.bytes = from.take<uint64_t>();
  if (result.what == link_request::kind::cancel)
    return result;
  if (result.bytes == 0 || result.offset + result.bytes < result.offset)
    return malformed(fmt::format("{} bytes at offset {} are no part of a block", result.bytes, result.offset));
  if (result.unit == 0 || result.unit > link_unit_max)
    return malformed(fmt::format("elements of {} bytes: from 1 to {} are possible", result.unit, link_unit_max));
  return result;
}

caf::expected<link_frame> decode_frame(std::span<const std::byte, link_frame::wire_bytes> wire) {
  std::array<std::byte, link_frame::wire_bytes> copy;
  auto from = numbers_of(copy, wire);
  link_frame result;
  auto what = from.take<uint32_t>();
  result.what = static_cast<link_frame::kind>(what);
  result.bytes = from.take<uint32_t>();
  result.id = from.take<uint64_t>();
  result.offset = from.take<uint64_t>();
  result.checksum = from.take<uint64_t>();
  if (what < 1 || what > 4)
    return malformed(fmt::format("there is no frame of kind {}", what));
  if (result.bytes > link_frame::bytes_max || result.has_bytes() != (result.bytes > 0))
    return malformed(fmt::format("a frame of kind {} cannot have {} bytes", what, result.bytes));
  return result;
}

std::vector<byte_range> cut_block(uint64_t bytes, uint64_t pieces_max, uint64_t piece_bytes_min, uint64_t unit) {
  ensure(unit > 0, "an element has a size");
  auto pieces = std::clamp<uint64_t>(bytes / std::max<uint64_t>(piece_bytes_min, 1), 1,
                                     std::max<uint64_t>(pieces_max, 1));
  std::vector<byte_range> result;
  uint64_t begin = 0;
  for (uint64_t i = 1; i <= pieces; ++i) {
    auto end = i == pieces ? bytes : bytes / pieces * i / unit * unit;
    if (end > begin || pieces == 1)
      result.emplace_back(begin, end);
    begin = end;
  }
  ensure(!result.empty() && result.front().first == 0 && result.back().second == bytes,
         "the pieces of a block cover all of it");
  return result;
}

} // namespace ringmaster
