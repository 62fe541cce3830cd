#include "runtime/memory/mapped_memory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <string>

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace ringmaster;

namespace {

constexpr auto page = huge_pages::page_bytes;
constexpr auto length = 3 * page + 5000; // the last page is no whole one

/// A sparse file, mapped.
struct mapped_file {
  int descriptor;
  std::byte* mapping;
  huge_pages pages;

  explicit mapped_file(int file)
    : descriptor(file), mapping(huge_pages::map(file, length, PROT_READ | PROT_WRITE)), pages(mapping, length) {
    REQUIRE(mapping != MAP_FAILED);
  }
  ~mapped_file() {
    ::munmap(mapping, length);
    ::close(descriptor);
  }
  uint64_t bytes_held() const {
    struct stat now;
    REQUIRE(::fstat(descriptor, &now) == 0);
    return static_cast<uint64_t>(now.st_blocks) * 512;
  }
};

/// In memory, or on a disk, whose files have no huge pages.
int sparse_file(std::string directory) {
  auto name = directory + "/huge_pages_XXXXXX";
  int result = ::mkstemp(name.data());
  REQUIRE(result >= 0);
  ::unlink(name.c_str());
  REQUIRE(::ftruncate(result, length) == 0);
  return result;
}

bool all_are(std::span<const std::byte> bytes, int value) {
  return std::all_of(bytes.begin(), bytes.end(), [&](std::byte x) { return x == std::byte(value); });
}

} // namespace

TEST_CASE("huge pages: a mapping begins where one can") {
  for (auto directory : {"/dev/shm", "/tmp"}) {
    mapped_file x{sparse_file(directory)};
    CHECK(reinterpret_cast<uintptr_t>(x.mapping) % page == 0);
    x.mapping[length - 1] = std::byte{7}; // the whole length is there
    CHECK(x.mapping[length - 1] == std::byte{7});
  }
}

TEST_CASE("huge pages: what is prepared holds the bytes that it held") {
  for (auto directory : {"/dev/shm", "/tmp"}) {
    mapped_file x{sparse_file(directory)};
    std::fill_n(x.mapping + page + 100, 200, std::byte{9});
    for (int times = 0; times < 2; ++times)
      x.pages.prepare(0, length);
    CHECK(all_are({x.mapping, page + 100}, 0));
    CHECK(all_are({x.mapping + page + 100, 200}, 9));
    CHECK(all_are({x.mapping + page + 300, length - page - 300}, 0));
  }
}

TEST_CASE("huge pages: a whole page that no one has used comes as one, where the system lets it") {
  mapped_file probe{sparse_file("/dev/shm")}, x{sparse_file("/dev/shm")};
  probe.mapping[0] = std::byte{1};
  bool possible = ::madvise(probe.mapping, page, 25) == 0; // MADV_COLLAPSE
  x.pages.prepare(0, page);
  CHECK(x.bytes_held() == (possible ? page : 4096));
}

TEST_CASE("huge pages: a page that is asked for in part, or used already, is left as it is") {
  mapped_file x{sparse_file("/dev/shm")};
  x.pages.prepare(1, page);
  x.pages.prepare(page, page - 1);
  x.pages.prepare(3 * page, length - 3 * page);
  CHECK(x.bytes_held() == 0);
  x.mapping[2 * page + 1] = std::byte{1};
  auto before = x.bytes_held();
  x.pages.prepare(2 * page, page);
  CHECK(x.bytes_held() == before);
}
