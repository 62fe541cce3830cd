#include "runtime/memory/device_memory.hpp"

#include "messages/errc.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

using namespace ringmaster;
using namespace ringmaster::test;
namespace fs = std::filesystem;

namespace {

constexpr auto highest = std::numeric_limits<uint64_t>::max();

/// One page of memory at [0x10000, 0x11000) on device 3.
struct one_page {
  temporary_directory directory;
  device_memory::options opts{device_id{3}, directory.path() / "3.mem", 0x10000, 0x1000};

  std::shared_ptr<device_memory> open() const {
    auto memory = device_memory::open(opts);
    REQUIRE_MESSAGE(memory.engaged(), render(memory.error()));
    return *memory;
  }

  caf::error refused() const {
    auto memory = device_memory::open(opts);
    REQUIRE(!memory.engaged());
    return memory.error();
  }
};

void fill(std::span<std::byte> bytes, int value) {
  std::fill(bytes.begin(), bytes.end(), std::byte(value));
}

bool holds(std::span<std::byte> bytes, int value) {
  return std::all_of(bytes.begin(), bytes.end(), [&](std::byte x) { return x == std::byte(value); });
}

std::string refusal(const caf::expected<std::span<std::byte>>& range) {
  REQUIRE(!range.engaged());
  CHECK(code_of(range.error()) == errc::out_of_range);
  return render(range.error());
}

} // namespace

TEST_CASE_FIXTURE(one_page, "device_memory: starts as zeros, at the addresses asked for") {
  auto memory = open();
  CHECK(memory->id() == device_id{3});
  CHECK(memory->min_address() == 0x10000);
  CHECK(memory->max_address() == 0x11000);
  CHECK(memory->file() == opts.file);
  auto all = memory->at(0x10000, 0x1000);
  REQUIRE(all.engaged());
  CHECK(all->size() == 0x1000);
  CHECK(holds(*all, 0));
}

TEST_CASE_FIXTURE(one_page, "device_memory: accepts exactly what lies within") {
  auto memory = open();
  CHECK(memory->at(0x10fff, 1).engaged());
  CHECK(memory->at(0x10000, 0).engaged());
  auto nothing = memory->at(0x11000, 0);
  REQUIRE(nothing.engaged());
  CHECK(nothing->empty());
  auto first = memory->at(0x10000, 1);
  auto last = memory->at(0x10fff, 1);
  CHECK(last->data() - first->data() == 0xfff);
}

TEST_CASE_FIXTURE(one_page, "device_memory: says which range is bad, and why") {
  auto memory = open();
  CHECK(refusal(memory->at(0x10fff, 2))
        == "device 0x3: address 0x10fff with 0x2 bytes ends beyond its memory, which is [0x10000, 0x11000)");
  CHECK(contains(refusal(memory->at(0x11000, 1)), "begins beyond"));
  CHECK(contains(refusal(memory->at(0x11001, 0)), "begins beyond"));
  CHECK(contains(refusal(memory->at(0xffff, 1)), "begins below"));
  CHECK(contains(refusal(memory->at(0xffff, 0x1000)), "begins below"));
  CHECK(contains(refusal(memory->at(0, 0)), "begins below"));
  CHECK(contains(refusal(memory->at(0x10000, highest - 0x10000)), "ends beyond"));
  CHECK(contains(refusal(memory->at(0x10000, highest)), "wraps around"));
  CHECK(contains(refusal(memory->at(0x10001, highest - 0x10000)), "wraps around"));
  CHECK(contains(refusal(memory->at(highest, 1)), "wraps around"));
  CHECK(contains(refusal(memory->at(highest, highest)), "wraps around"));
}

TEST_CASE_FIXTURE(one_page, "device_memory: refuses another device's addresses") {
  auto memory = open();
  opts.id = device_id{0x1f};
  opts.file = directory.path() / "other";
  opts.min_address = 0x80000;
  auto other = open();
  CHECK(other->at(0x80000, 8).engaged());
  CHECK(contains(refusal(memory->at(0x80000, 8)), "device 0x3: address 0x80000"));
  CHECK(contains(refusal(other->at(0x10000, 8)), "device 0x1f: address 0x10000"));
}

TEST_CASE_FIXTURE(one_page, "device_memory: keeps its scratch area from users and apart from their range") {
  auto memory = open();
  auto scratch = memory->allocate_scratch(0x1000);
  REQUIRE(scratch.engaged());
  CHECK(*scratch == 0x11000);
  CHECK(memory->scratch_used() == 0x1000);
  CHECK(contains(refusal(memory->at(*scratch, 1)), "begins beyond"));
  fill(*memory->at_runtime(*scratch, 0x1000), 0xee);
  CHECK(holds(*memory->at(0x10000, 0x1000), 0));
  CHECK(memory->at_runtime(0x10fff, 1)->data() == memory->at(0x10fff, 1)->data());
  CHECK(memory->at_runtime(0x12000, 0).engaged());
  refusal(memory->at_runtime(0x11fff, 2));
  refusal(memory->at_runtime(0x10fff, 2));
  refusal(memory->at_runtime(0x11000, highest - 0x11000 + 1));
  CHECK(code_of(memory->allocate_scratch(1).error()) == errc::out_of_memory);
  CHECK(contains(render(memory->allocate_scratch(1).error()), "device 0x3, scratch: "));
  CHECK(!memory->free_scratch(*scratch));
  CHECK(memory->scratch_used() == 0);
  CHECK(code_of(memory->free_scratch(*scratch)) == errc::invalid_argument);
}

TEST_CASE_FIXTURE(one_page, "device_memory: allocates within the user's range") {
  auto memory = open();
  auto first = memory->allocate(1);
  auto second = memory->allocate(0xf00);
  REQUIRE(first.engaged());
  REQUIRE(second.engaged());
  CHECK(*first == 0x10000);
  CHECK(*second == 0x10100);
  auto third = memory->allocate(0x100);
  CHECK(code_of(third.error()) == errc::out_of_memory);
  CHECK(contains(render(third.error()), "device 0x3: "));
  CHECK(code_of(memory->allocate(0).error()) == errc::invalid_argument);
  CHECK(code_of(memory->allocate(8, 12).error()) == errc::invalid_argument);
  CHECK(!memory->free(*first));
  CHECK(contains(render(memory->free(*first)), "device 0x3: cannot free 0x10000"));
  CHECK(code_of(memory->free(*second + 1)) == errc::invalid_argument);
}

TEST_CASE_FIXTURE(one_page, "device_memory: a file that is there is another device's, and left as it is") {
  auto memory = open();
  fill(*memory->at(0x10000, 0x1000), 7);
  auto err = refused();
  CHECK(code_of(err) == errc::io_error);
  CHECK(contains(render(err), "device 0x3: cannot make " + opts.file.string() + ": File exists"));
  CHECK(fs::file_size(opts.file) == 0x3000);
  CHECK(holds(*memory->at(0x10000, 0x1000), 7));
}

TEST_CASE_FIXTURE(one_page, "device_memory: its file goes with the device, or with the memory, and only once") {
  auto memory = open();
  fill(*memory->at(0x10000, 0x1000), 7);
  memory->remove_file();
  CHECK_FALSE(fs::exists(opts.file));
  CHECK(holds(*memory->at(0x10000, 0x1000), 7)); // for those that still read it
  auto next = open();
  CHECK(holds(*next->at(0x10000, 0x1000), 0));
  memory = nullptr;
  CHECK(fs::exists(opts.file));
  next = nullptr;
  CHECK_FALSE(fs::exists(opts.file));
}

TEST_CASE_FIXTURE(one_page, "device_memory: a file that is cut, or whose disk is full, ends no one, and is said") {
  auto memory = open();
  fill(*memory->at(0x10000, 0x1000), 7);
  CHECK_FALSE(memory->damage());
  fs::resize_file(opts.file, 0);
  fill(*memory->at(0x10000, 0x1000), 8);
  CHECK(code_of(memory->damage()) == errc::device_lost);
  CHECK(render(memory->damage())
        == "device 0x3: its memory file " + opts.file.string() + " was cut, or its disk is full");
}

TEST_CASE_FIXTURE(one_page, "device_memory: takes little of the disk until it is written to") {
  opts.bytes = 64 << 20;
  auto memory = open();
  struct stat status;
  REQUIRE(::stat(opts.file.c_str(), &status) == 0);
  CHECK(status.st_size == (128 << 20) + 4096);
  CHECK(status.st_blocks * 512 < 1 << 20);
}

TEST_CASE_FIXTURE(one_page, "device_memory: refuses options that make no sense") {
  SUBCASE("no file") {
    opts.file.clear();
  }
  SUBCASE("address 0") {
    opts.min_address = 0;
  }
  SUBCASE("no bytes") {
    opts.bytes = 0;
  }
  SUBCASE("twice the bytes wrap around") {
    opts.bytes = uint64_t{1} << 63;
  }
  SUBCASE("the file is longer than files can be") {
    opts.bytes = uint64_t{1} << 62;
  }
  SUBCASE("the scratch area's end wraps around") {
    opts.min_address = highest - 0x1fff;
    opts.bytes = 0x1001;
  }
  CHECK(code_of(refused()) == errc::invalid_argument);
}

TEST_CASE_FIXTURE(one_page, "device_memory: names the file and the reason where the system refuses") {
  SUBCASE("a directory has its name") {
    opts.file = directory.path();
    CHECK(contains(render(refused()), "File exists"));
  }
  SUBCASE("a file stands where a directory should be") {
    std::ofstream{directory.path() / "a"} << "in the way";
    opts.file = directory.path() / "a" / "3.mem";
    CHECK(contains(render(refused()), "Not a directory"));
  }
  CHECK(code_of(refused()) == errc::io_error);
  CHECK(contains(render(refused()), opts.file.string()));
}

TEST_CASE_FIXTURE(one_page, "device_memory: refuses what the disk cannot hold, and says what to do") {
  struct statvfs disk;
  REQUIRE(::statvfs(directory.path().c_str(), &disk) == 0);
  opts.bytes = (uint64_t{disk.f_blocks} + 1) * disk.f_frsize;
  auto err = refused();
  CHECK(code_of(err) == errc::io_error);
  CHECK(contains(render(err), opts.file.string()));
  CHECK(contains(render(err), "No space left on device"));
  CHECK(contains(render(err), "give the devices less memory"));
  CHECK_FALSE(fs::exists(opts.file));
}
