#pragma once

#include "messages/transfer.hpp"

#include <caf/expected.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ringmaster {

// The protocol of a bulk connection. The side that connects sends hello, then requests blocks; the listening side sends
// hello, then sends frames, each with some bytes of one block:
//
//   hello      magic 8, version 4, 0 4, process 8
//   request    what 4, checksums 4, id 8, key 36, unit 4, device 8, offset 8, bytes 8, 0 8
//   frame      what 4, bytes 4, id 8, offset 8, checksum 8; then the bytes
//
// Numbers are little-endian. What is malformed ends the connection: nothing after it can be trusted.

/// The side that connects names the process that it wants; the listening side answers with its own.
struct link_hello {
  static constexpr size_t wire_bytes = 24;
  uint64_t process = 0; ///< link_place::process
};

/// A block, or the rest of one. `id` is the connection's name for it, and rises.
struct link_request {
  enum class kind : uint32_t { fetch = 1, cancel = 2 }; ///< Of a cancel, only the id counts.
  static constexpr size_t wire_bytes = 88;

  kind what = kind::fetch;
  bool checksums = false; ///< Wanted with the bytes.
  uint64_t id = 0;        ///< From 1.
  transfer_key key{};
  device_id device{};
  uint64_t offset = 0; ///< In the offered block.
  uint64_t bytes = 0;  ///< From there; > 0.
  uint32_t unit = 1;   ///< Of an element: frames have whole ones.
};

/// A piece of what was requested, in order for each request; those of several take turns.
struct link_frame {
  enum class kind : uint32_t {
    bytes = 1,
    checked_bytes = 2, ///< `checksum` is theirs.
    gone = 3,          ///< The block is no longer on offer; no bytes.
    damaged = 4        ///< Its memory cannot be read; no bytes.
  };
  static constexpr size_t wire_bytes = 32;
  static constexpr uint32_t bytes_max = 256u << 10; ///< What a core's cache holds beside what it is reduced with.

  kind what = kind::bytes;
  uint32_t bytes = 0;
  uint64_t id = 0;
  uint64_t offset = 0; ///< In the offered block.
  uint64_t checksum = 0;

  bool has_bytes() const { return what == kind::bytes || what == kind::checked_bytes; }
};

constexpr uint32_t link_unit_max = 4096;

std::array<std::byte, link_hello::wire_bytes> encode(const link_hello& x);
std::array<std::byte, link_request::wire_bytes> encode(const link_request& x);
std::array<std::byte, link_frame::wire_bytes> encode(const link_frame& x);

// Errors: corrupt, with what is wrong; wrong_version.
caf::expected<link_hello> decode_hello(std::span<const std::byte, link_hello::wire_bytes> wire);
caf::expected<link_request> decode_request(std::span<const std::byte, link_request::wire_bytes> wire);
caf::expected<link_frame> decode_frame(std::span<const std::byte, link_frame::wire_bytes> wire);

/// XXH3, 64 bits: the checksum of frames on bulk connections, and the digest of stored tensors and data sets. It
/// detects damage, not forgery.
uint64_t link_checksum(std::span<const std::byte> bytes);

/// A part [first, second) of a block, in bytes.
using byte_range = std::pair<uint64_t, uint64_t>;

/// Cuts a block into at most `pieces_max` ranges of about the same size, none (but an only one) shorter than
/// `piece_bytes_min`, at multiples of `unit`.
std::vector<byte_range> cut_block(uint64_t bytes, uint64_t pieces_max, uint64_t piece_bytes_min, uint64_t unit);

} // namespace ringmaster
