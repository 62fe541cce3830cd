#include "runtime/links/link_frames.hpp"

#include "messages/errc.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace ringmaster;
using ringmaster::test::contains;

namespace {

link_request some_request() {
  link_request x;
  x.checksums = true;
  x.id = 7;
  x.key = {11, {12}, {13}, 14, 15, 16};
  x.device = {17};
  x.offset = 18;
  x.bytes = 19;
  x.unit = 8;
  return x;
}

template <class T>
std::string complaint(const caf::expected<T>& x) {
  return x ? "" : render(x.error());
}

} // namespace

TEST_CASE("link frames: what is written is read") {
  CHECK(decode_hello(encode(link_hello{0xfedcba9876543210}))->process == 0xfedcba9876543210);
  auto x = some_request();
  auto y = *decode_request(encode(x));
  CHECK(y.what == x.what);
  CHECK(y.checksums);
  CHECK(y.id == x.id);
  CHECK(y.key == x.key);
  CHECK(y.device == x.device);
  CHECK(y.offset == x.offset);
  CHECK(y.bytes == x.bytes);
  CHECK(y.unit == x.unit);
  link_frame frame{link_frame::kind::checked_bytes, link_frame::bytes_max, 3, 1ull << 40, 0x123456789abcdef0};
  auto read = *decode_frame(encode(frame));
  CHECK(read.what == frame.what);
  CHECK(read.bytes == frame.bytes);
  CHECK(read.id == frame.id);
  CHECK(read.offset == frame.offset);
  CHECK(read.checksum == frame.checksum);
}

TEST_CASE("link frames: a stranger, and another version, are told apart") {
  auto hello = encode(link_hello{5});
  hello[0] = std::byte{'G'}; // as in "GET /"
  CHECK(contains(complaint(decode_hello(hello)), "are not those of a bulk connection of ringmaster"));
  auto later = encode(link_hello{5});
  later[8] = std::byte{9};
  auto problem = decode_hello(later);
  CHECK(problem.error() == errc::wrong_version);
  CHECK(contains(complaint(problem), "version 9"));
}

TEST_CASE("link frames: requests that ask for nothing, for too much, or in a way that there is not, are refused") {
  auto refused = [](auto change) {
    auto x = some_request();
    change(x);
    return complaint(decode_request(encode(x)));
  };
  CHECK(refused([](auto&) {}).empty());
  CHECK(contains(refused([](auto& x) { x.bytes = 0; }), "0 bytes at offset 18 are no part of a block"));
  CHECK(contains(refused([](auto& x) { x.offset = UINT64_MAX - 3; }), "are no part of a block"));
  CHECK(contains(refused([](auto& x) { x.id = 0; }), "id 0"));
  CHECK(contains(refused([](auto& x) { x.unit = 0; }), "elements of 0 bytes"));
  CHECK(contains(refused([](auto& x) { x.unit = link_unit_max + 1; }), "elements of 4097 bytes"));
  CHECK(contains(refused([](auto& x) { x.what = link_request::kind{3}; }), "no request of kind 3"));
  // Of a cancel only the id counts.
  CHECK(refused([](auto& x) { x = {.what = link_request::kind::cancel, .id = 4, .bytes = 0}; }).empty());
}

TEST_CASE("link frames: frames that are too long, or have bytes that they cannot have, are refused") {
  auto refused = [](link_frame x) { return complaint(decode_frame(encode(x))); };
  using kind = link_frame::kind;
  CHECK(refused({kind::bytes, 1, 1}).empty());
  CHECK(refused({kind::gone, 0, 1}).empty());
  CHECK(contains(refused({kind::bytes, link_frame::bytes_max + 1, 1}), "cannot have 262145 bytes"));
  CHECK(contains(refused({kind::bytes, 0, 1}), "cannot have 0 bytes"));
  CHECK(contains(refused({kind::gone, 1, 1}), "a frame of kind 3 cannot have 1 bytes"));
  CHECK(contains(refused({kind{0}, 0, 1}), "no frame of kind 0"));
  CHECK(contains(refused({kind{5}, 0, 1}), "no frame of kind 5"));
}

TEST_CASE("link frames: any bytes are read as something that can be, or refused") {
  std::mt19937_64 random{1};
  for (int round = 0; round < 20000; ++round) {
    std::array<std::byte, link_request::wire_bytes> wire;
    for (auto& x : wire)
      x = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
    if (auto x = decode_request(wire); x && x->what == link_request::kind::fetch) {
      CHECK(x->offset + x->bytes > x->offset);
      CHECK((x->unit >= 1 && x->unit <= link_unit_max));
    }
    if (auto x = decode_frame(std::span{wire}.first<link_frame::wire_bytes>())) {
      CHECK(x->bytes <= link_frame::bytes_max);
      CHECK(x->has_bytes() == (x->bytes > 0));
    }
  }
}
