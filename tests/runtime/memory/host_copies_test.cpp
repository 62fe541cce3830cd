#include "runtime/memory/host_copies.hpp"

#include "messages/errc.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr device_id one{1};
constexpr device_id two{2};

byte_block block_of(size_t bytes, uint8_t first = 0) {
  std::vector<uint8_t> values(bytes);
  for (auto& value : values)
    value = first++;
  return byte_block::of(std::move(values));
}

std::string missing(const host_copies& copies, device_id device, uint64_t address, uint64_t bytes) {
  auto found = copies.find(device, address, bytes);
  REQUIRE(!found.engaged());
  CHECK(code_of(found.error()) == errc::device_lost);
  return render(found.error());
}

/// The bytes of the range, checking that the pieces cover it exactly.
std::vector<uint8_t> bytes_of(const std::vector<host_copies::piece>& pieces, uint64_t address, uint64_t bytes) {
  std::vector<uint8_t> result;
  for (const auto& piece : pieces) {
    REQUIRE(piece.address == address + result.size());
    REQUIRE(piece.bytes > 0);
    REQUIRE(piece.offset + piece.bytes <= piece.block.size());
    const auto values = piece.block.as<uint8_t>().subspan(piece.offset, piece.bytes);
    result.insert(result.end(), values.begin(), values.end());
  }
  REQUIRE(result.size() == bytes);
  return result;
}

/// One entry a byte: which copy it has, or what became of it.
struct reference_copies {
  static constexpr uint64_t address_count = 96;

  struct cell {
    enum { never, kept, overwritten, dropped } state = never;
    uint64_t copy = 0;
    uint8_t value = 0;
  };

  uint64_t bytes_max;
  std::vector<byte_block> blocks;             // by copy
  std::map<const std::byte*, size_t> largest; // of the copies of a block since it was held last
  std::map<device_id, std::array<cell, address_count>> devices;

  void remember(device_id device, uint64_t address, const byte_block& block) {
    for (uint64_t i = 0; i < block.size(); ++i)
      devices[device][address + i] = {};
    forget_unheld();
    for (uint64_t i = 0; i < block.size(); ++i)
      devices[device][address + i] = {cell::kept, blocks.size(), block.as<uint8_t>()[i]};
    blocks.push_back(block);
    if (block.size() > 0)
      largest[block.data()] = std::max(largest[block.data()], block.size());
    while (held_bytes() > bytes_max) {
      const auto oldest = *living().begin();
      for (auto& [id, cells] : devices)
        for (auto& x : cells)
          if (x.state == cell::kept && x.copy == oldest)
            x.state = cell::dropped;
    }
  }

  void overwritten(device_id device, uint64_t address, uint64_t bytes) {
    for (uint64_t i = address; i < address + bytes; ++i)
      if (auto& x = devices[device][i]; x.state != cell::never)
        x.state = cell::overwritten;
  }

  std::set<uint64_t> living() const {
    std::set<uint64_t> result;
    for (const auto& [id, cells] : devices)
      for (const auto& x : cells)
        if (x.state == cell::kept)
          result.insert(x.copy);
    return result;
  }

  void forget_unheld() {
    std::set<const std::byte*> held;
    for (auto copy : living())
      held.insert(blocks[copy].data());
    std::erase_if(largest, [&](auto& entry) { return held.count(entry.first) == 0; });
  }

  uint64_t held_bytes() {
    forget_unheld();
    uint64_t sum = 0;
    for (const auto& [data, bytes] : largest)
      sum += bytes;
    return sum;
  }

  /// The words for the first sub-range that is missing, or nothing.
  std::optional<std::string> missing(device_id device, uint64_t address, uint64_t bytes) {
    const auto& cells = devices[device];
    const char* words[] = {"was never copied", "", "was overwritten", "was dropped"};
    for (auto i = address; i < address + bytes; ++i) {
      if (cells[i].state == cell::kept)
        continue;
      auto end = i;
      while (end < address + bytes && cells[end].state == cells[i].state)
        ++end;
      return fmt::format("its part [{:#x}, {:#x}) {}", i, end, words[cells[i].state]);
    }
    return std::nullopt;
  }
};

void compare(const host_copies& copies, reference_copies& reference, device_id device, uint64_t address,
             uint64_t bytes) {
  auto found = copies.find(device, address, bytes);
  if (auto expected = reference.missing(device, address, bytes)) {
    const auto text = missing(copies, device, address, bytes);
    CAPTURE(text);
    REQUIRE_MESSAGE(contains(text, *expected), *expected);
    return;
  }
  REQUIRE_MESSAGE(found.engaged(), render(found.error()));
  const auto values = bytes_of(*found, address, bytes);
  for (uint64_t i = 0; i < bytes; ++i)
    REQUIRE(values[i] == reference.devices[device][address + i].value);
}

} // namespace

TEST_CASE("host_copies: gives back what was copied, sharing the block") {
  host_copies copies{1000};
  auto block = block_of(16);
  copies.remember(one, 0x100, block);
  auto found = copies.find(one, 0x104, 8);
  REQUIRE(found.engaged());
  REQUIRE(found->size() == 1);
  CHECK(found->front().address == 0x104);
  CHECK(found->front().offset == 4);
  CHECK(found->front().bytes == 8);
  CHECK(found->front().block.data() == block.data());
  CHECK(copies.held_bytes() == 16);
}

TEST_CASE("host_copies: covers a range from several copies") {
  host_copies copies{1000};
  copies.remember(one, 8, block_of(8, 100));
  copies.remember(one, 0, block_of(8, 0));
  copies.remember(one, 4, block_of(6, 50));
  auto found = copies.find(one, 2, 12);
  REQUIRE(found.engaged());
  CHECK(bytes_of(*found, 2, 12) == std::vector<uint8_t>{2, 3, 50, 51, 52, 53, 54, 55, 102, 103, 104, 105});
}

TEST_CASE("host_copies: an empty range needs no copy") {
  host_copies copies{1000};
  copies.remember(one, 0, byte_block{});
  auto found = copies.find(one, 0, 0);
  REQUIRE(found.engaged());
  CHECK(found->empty());
  CHECK(copies.held_bytes() == 0);
}

TEST_CASE("host_copies: says which part is missing, and what became of it") {
  host_copies copies{32};
  CHECK(contains(missing(copies, one, 0x10, 4), "[0x10, 0x14) was never copied from the host"));
  copies.remember(one, 0x10, block_of(16));
  CHECK(missing(copies, one, 0x8, 16)
        == "device 0x1: the host cannot give back [0x8, 0x18): its part [0x8, 0x10) was never copied from the host");
  CHECK(contains(missing(copies, one, 0x18, 16), "[0x20, 0x28) was never copied from the host"));
  CHECK(contains(missing(copies, two, 0x10, 16), "device 0x2"));
  copies.overwritten(one, 0x14, 2);
  CHECK(contains(missing(copies, one, 0x10, 16), "[0x14, 0x16) was overwritten"));
  copies.remember(one, 0x40, block_of(32));
  CHECK(contains(missing(copies, one, 0x10, 4), "[0x10, 0x14) was dropped"));
  CHECK(contains(missing(copies, one, 0x14, 2), "[0x14, 0x16) was overwritten"));
  CHECK(copies.find(one, 0x40, 32).engaged());
}

TEST_CASE("host_copies: a later copy mends what was overwritten") {
  host_copies copies{1000};
  copies.remember(one, 0, block_of(16));
  copies.overwritten(one, 4, 8);
  copies.remember(one, 4, block_of(8, 70));
  auto found = copies.find(one, 0, 16);
  REQUIRE(found.engaged());
  CHECK(bytes_of(*found, 0, 16) == std::vector<uint8_t>{0, 1, 2, 3, 70, 71, 72, 73, 74, 75, 76, 77, 12, 13, 14, 15});
}

TEST_CASE("host_copies: counts a block once, however many devices have it") {
  host_copies copies{20};
  auto block = block_of(16);
  copies.remember(one, 0, block);
  copies.remember(two, 0, block);
  CHECK(copies.held_bytes() == 16);
  copies.forget(one);
  CHECK(copies.held_bytes() == 16);
  CHECK(contains(missing(copies, one, 0, 16), "was never copied"));
  CHECK(copies.find(two, 0, 16).engaged());
  copies.overwritten(two, 0, 16);
  CHECK(copies.held_bytes() == 0);
}

TEST_CASE("host_copies: a block and a part of it count as the block, no matter which goes first") {
  for (bool part_first : {false, true}) {
    host_copies copies{20};
    auto block = block_of(16);
    copies.remember(one, 0, part_first ? block.part(0, 4) : block);
    copies.remember(two, 0, part_first ? block : block.part(0, 4));
    CHECK(copies.held_bytes() == 16);
    copies.forget(one);
    CHECK(copies.held_bytes() == 16);
    copies.forget(two);
    CHECK(copies.held_bytes() == 0);
    copies.remember(one, 0, block_of(20));
    CHECK(copies.held_bytes() == 20);
  }
}

TEST_CASE("host_copies: a part in the middle of a block holds all of it, and gives its own bytes back") {
  host_copies copies{20};
  copies.remember_part(one, 0x100, block_of(16), 4, 8);
  CHECK(copies.held_bytes() == 16);
  auto found = copies.find(one, 0x102, 4);
  REQUIRE(found);
  CHECK(bytes_of(*found, 0x102, 4) == std::vector<uint8_t>{6, 7, 8, 9});
  CHECK(contains(missing(copies, one, 0x100, 9), "[0x108, 0x109) was never copied"));
  copies.remember(two, 0, block_of(20)); // beyond the limit: the part goes
  CHECK(contains(missing(copies, one, 0x100, 8), "was dropped"));
  CHECK(copies.held_bytes() == 20);
}

TEST_CASE("host_copies: holds a block until its last byte is gone") {
  host_copies copies{1000};
  copies.remember(one, 0, block_of(100));
  copies.overwritten(one, 1, 99);
  CHECK(copies.held_bytes() == 100);
  copies.overwritten(one, 0, 1);
  CHECK(copies.held_bytes() == 0);
}

TEST_CASE("host_copies: a block larger than the limit is not kept") {
  host_copies copies{10};
  copies.remember(one, 0, block_of(11));
  CHECK(copies.held_bytes() == 0);
  CHECK(contains(missing(copies, one, 0, 11), "was dropped"));
}

TEST_CASE("host_copies: pieces outlive what is remembered") {
  host_copies copies{10};
  copies.remember(one, 0, block_of(10));
  auto found = copies.find(one, 0, 10);
  REQUIRE(found.engaged());
  copies.forget(one);
  CHECK(bytes_of(*found, 0, 10).back() == 9);
}

TEST_CASE("host_copies: refuses a range that wraps around") {
  host_copies copies{10};
  CHECK(code_of(copies.find(one, ~uint64_t{0}, 2).error()) == errc::invalid_argument);
}

TEST_CASE("host_copies: agrees with one entry a byte on random calls") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    const uint64_t bytes_max = seed % 3 == 0 ? 10000 : 40 + random() % 100;
    host_copies copies{bytes_max};
    reference_copies reference{bytes_max, {}, {}, {}};
    byte_block latest;
    for (int call = 0; call < 300; ++call) {
      const device_id device{1 + random() % 3};
      const uint64_t address = random() % reference_copies::address_count;
      const uint64_t bytes = random() % std::min<uint64_t>(40, reference_copies::address_count - address + 1);
      switch (random() % 8) {
        case 0:
        case 1:
        case 2: latest = block_of(bytes, static_cast<uint8_t>(random())); [[fallthrough]];
        case 3:
          if (random() % 3 == 0)
            latest = latest.part(0, random() % (latest.size() + 1));
          if (address + latest.size() > reference_copies::address_count)
            break;
          copies.remember(device, address, latest);
          reference.remember(device, address, latest);
          break;
        case 4:
        case 5:
        case 6:
          copies.overwritten(device, address, bytes);
          reference.overwritten(device, address, bytes);
          break;
        default:
          if (random() % 8 == 0) {
            copies.forget(device);
            reference.devices.erase(device);
          }
      }
      REQUIRE(copies.held_bytes() == reference.held_bytes());
      for (uint64_t id = 1; id <= 3; ++id) {
        compare(copies, reference, device_id{id}, address, bytes);
        const uint64_t at = random() % reference_copies::address_count;
        compare(copies, reference, device_id{id}, at, 1);
      }
    }
  }
}

TEST_CASE("host copies: a copy under way is remembered when it is made, unless a later call changes its range") {
  host_copies copies{1000};
  device_id device{1};
  auto block = [](char fill) { return byte_block::of(std::vector<char>(8, fill)); };
  copies.remember(device, 64, block('a'));
  auto first = copies.copying(device, 64, 8);
  CHECK(!copies.find(device, 64, 8)); // no one knows which bytes are there
  copies.overwritten(device, 64, 8);  // a result of an operation before the copy
  copies.copied(first, block('b'));
  REQUIRE(copies.find(device, 64, 8));
  CHECK(copies.find(device, 64, 8)->front().block.as<char>()[0] == 'b');

  auto second = copies.copying(device, 64, 8);
  copies.will_change(device, 71, 1); // a receive that was called behind the copy
  copies.copied(second, block('c'));
  CHECK(!copies.find(device, 64, 8));

  auto third = copies.copying(device, 64, 8);
  copies.copied(third, {}); // refused by the device
  CHECK(!copies.find(device, 64, 8));

  auto fourth = copies.copying(device, 64, 8);
  auto fifth = copies.copying(device, 72, 8);
  copies.copied(fifth, block('e'));
  copies.copied(fourth, block('d'));
  CHECK(copies.find(device, 64, 16));

  auto sixth = copies.copying(device, 64, 8);
  copies.forget(device);
  copies.copied(sixth, block('f'));
  CHECK(!copies.find(device, 64, 8));
  CHECK(copies.held_bytes() == 0);
}
