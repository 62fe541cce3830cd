// The three messages of bulk connections: what is read is written as it came.
#include "runtime/invariants/ensure.hpp"
#include "runtime/links/link_frames.hpp"
#include "tests/fuzz/fuzz_target.hpp"

#include <algorithm>
#include <array>

namespace ringmaster::fuzz {

namespace {

template <size_t Size, class Decode>
void read_and_write(std::span<const std::byte> bytes, Decode decode) {
  std::array<std::byte, Size> wire{};
  std::ranges::copy(bytes.first(std::min(bytes.size(), Size)), wire.begin());
  const auto x = decode(std::span<const std::byte, Size>{wire});
  if (!x)
    return;
  const auto again = encode(*x); // bytes without a meaning may differ
  const auto read_again = decode(std::span<const std::byte, Size>{again});
  ensure(read_again && encode(*read_again) == again, "what was read is written as what it was read as");
}

void read_frames(std::string_view bytes) {
  const auto wire = as_bytes(bytes);
  read_and_write<link_hello::wire_bytes>(wire, decode_hello);
  read_and_write<link_request::wire_bytes>(wire, decode_request);
  read_and_write<link_frame::wire_bytes>(wire, decode_frame);
}

const fuzz_target fuzz_link_frames{"link_frames", read_frames};

} // namespace

} // namespace ringmaster::fuzz
