#include "runtime/memory/memory_neighbours.hpp"

#include "messages/errc.hpp"
#include "runtime/memory/device_memory.hpp"
#include "runtime/memory/memory_directory.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr uint64_t base = 0x1000, user_bytes = 1u << 16;

struct owned_memory {
  temporary_directory dir;
  std::shared_ptr<device_memory> owner;

  owned_memory() : owner(*device_memory::open({device_id{3}, dir.path() / "device-3.memory", base, user_bytes})) {
    std::ranges::fill(*owner->at(base, user_bytes), std::byte{7});
  }
  const memory_place& place() const { return *owner->place(); }
};

std::string why_not(const memory_place& place) {
  memory_neighbours neighbours{mapped_memory::access::read};
  auto there = neighbours.find(place);
  REQUIRE(!there);
  CHECK(code_of(there.error()) == errc::unreachable);
  return render(there.error());
}

} // namespace

TEST_CASE("neighbours: what the owner writes is read, and what is written the owner reads") {
  owned_memory x;
  memory_neighbours readers{mapped_memory::access::read}, writers{mapped_memory::access::write};
  auto reader = *readers.find(x.place());
  auto writer = *writers.find(x.place());
  CHECK((*reader->at(base + 100, 1))[0] == std::byte{7});
  (*writer->at(base + 100, 1))[0] = std::byte{9};
  CHECK((*x.owner->at(base + 100, 1))[0] == std::byte{9});
  CHECK((*reader->at(base + 100, 1))[0] == std::byte{9});
  CHECK(reader->id() == device_id{3});
  CHECK(render(reader->at(base + user_bytes, 1).error()) == render(x.owner->at(base + user_bytes, 1).error()));
  CHECK(reader == *readers.find(x.place())); // mapped once
}

TEST_CASE("neighbours: the scratch area is there, too") {
  owned_memory x;
  auto address = *x.owner->allocate_scratch(64);
  (*x.owner->at_runtime(address, 64))[63] = std::byte{5};
  memory_neighbours readers{mapped_memory::access::read};
  CHECK((*(*readers.find(x.place()))->at_runtime(address, 64))[63] == std::byte{5});
}

TEST_CASE("neighbours: a memory that is not surely the one that is meant is not used") {
  owned_memory x;
  auto place = x.place();
  place.host ^= 1;
  CHECK(contains(why_not(place), "device 0x3: its memory file"));
  CHECK(contains(why_not(place), "it is on another host"));
  place.host = 0;
  CHECK(contains(why_not(place), "it is on another host"));
  place = x.place();
  ++place.inode;
  CHECK(contains(why_not(place), "another file has that name here"));
  place = x.place();
  ++place.file_system;
  CHECK(contains(why_not(place), "another file has that name here"));
  place = x.place();
  place.bytes *= 2;
  CHECK(contains(why_not(place), "it has 135168 bytes, not 266240"));
  place.bytes = UINT64_MAX;
  CHECK(contains(why_not(place), "it cannot be"));
  place = x.place();
  place.file.insert(place.file.rfind('/'), "/gone");
  CHECK(contains(why_not(place), "No such file"));
  place.file = "/etc/passwd";
  CHECK(contains(why_not(place), "that is not the name of a device's memory"));
  place = x.place();
  ++place.device.value;
  CHECK(contains(why_not(place), "that is not the name of a device's memory"));
  CHECK(contains(why_not({}), "it has no file"));
}

TEST_CASE("neighbours: a symbolic link of that name is not followed") {
  owned_memory x;
  auto place = x.place();
  auto link = x.dir.path() / "links" / "device-3.memory";
  std::filesystem::create_directory(link.parent_path());
  std::filesystem::create_symlink(place.file, link);
  place.file = link;
  CHECK(contains(why_not(place), "symbolic links"));
}

TEST_CASE("neighbours: a file that is removed can still be read, and is let go of when another comes") {
  owned_memory x, y;
  memory_neighbours readers{mapped_memory::access::read, std::chrono::seconds{0}};
  std::weak_ptr<mapped_memory> seen = *readers.find(x.place());
  std::filesystem::remove(x.place().file);
  CHECK((*seen.lock()->at(base, 1))[0] == std::byte{7});
  CHECK(readers.find(y.place()));
  CHECK(seen.expired());
}

TEST_CASE("neighbours: whose device is said to be gone is let go of at once, while those that read it go on") {
  owned_memory x;
  memory_neighbours readers{mapped_memory::access::read};
  std::weak_ptr<mapped_memory> seen = *readers.find(x.place());
  auto in_use = seen.lock();
  readers.forget(x.place());
  CHECK((*in_use->at(base, 1))[0] == std::byte{7});
  in_use = nullptr;
  CHECK(seen.expired());
  readers.forget(x.place()); // nothing to do
  CHECK(readers.find(x.place()));
}

TEST_CASE("neighbours: a file that is cut ends no one, and says so") {
  for (auto access : {mapped_memory::access::read, mapped_memory::access::write}) {
    owned_memory x;
    memory_neighbours neighbours{access};
    auto there = *neighbours.find(x.place());
    CHECK_FALSE(there->damage());
    std::filesystem::resize_file(x.place().file, 0);
    auto bytes = *there->at(base, user_bytes);
    if (access == mapped_memory::access::write)
      bytes[user_bytes - 1] = std::byte{1};
    else
      CHECK(bytes[user_bytes - 1] == std::byte{0});
    CHECK(code_of(there->damage()) == errc::device_lost);
    CHECK(contains(render(there->damage()), "device 0x3: its memory file"));
    CHECK_FALSE(neighbours.find(x.place()));
  }
}

TEST_CASE("neighbours: a file that is cut is too short before anybody touches it; one that is removed is not") {
  owned_memory x;
  memory_neighbours readers{mapped_memory::access::read};
  auto there = *readers.find(x.place());
  CHECK_FALSE(shortage_of(*there));
  auto whole = std::filesystem::file_size(x.place().file);
  std::filesystem::resize_file(x.place().file, whole - 1);
  CHECK(code_of(shortage_of(*there)) == errc::device_lost);
  CHECK(contains(render(shortage_of(*there)), fmt::format("was cut: it has {} bytes, not {}", whole - 1, whole)));
  CHECK_FALSE(there->damage());
  std::filesystem::resize_file(x.place().file, whole);
  CHECK_FALSE(shortage_of(*there));
  std::filesystem::remove(x.place().file);
  CHECK_FALSE(shortage_of(*there));
}
