#include "runtime/operations/waiting_ranks.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

/// Of a device whose memory file lies there.
device_handle lying_on(uint64_t kernel, uint64_t file_system) {
  auto place = std::make_shared<memory_place>();
  place->host = kernel;
  place->file_system = file_system;
  return {.device = nullptr, .stream = nullptr, .memory = std::move(place)};
}

using numbers_by_rank = std::vector<uint32_t>;

} // namespace

TEST_CASE(
  "rank_hosts: the devices of a kernel are on one host, in whatever order, and hosts count from the first rank") {
  const std::vector<device_handle> ranks{lying_on(70, 1), lying_on(70, 1), lying_on(20, 1),
                                         lying_on(70, 1), lying_on(90, 1), lying_on(20, 1)};
  CHECK(rank_hosts(ranks, true) == numbers_by_rank{0, 0, 1, 0, 2, 1});
}

TEST_CASE("rank_hosts: containers of one kernel do not see each other's files, so they are hosts of their own") {
  const std::vector<device_handle> ranks{lying_on(70, 1), lying_on(70, 2), lying_on(70, 1)};
  CHECK(rank_hosts(ranks, true) == numbers_by_rank{0, 1, 0});
}

TEST_CASE("rank_hosts: all on one host need no numbers") {
  const std::vector<device_handle> ranks{lying_on(70, 1), lying_on(70, 1)};
  CHECK(rank_hosts(ranks, true).empty());
  CHECK(rank_hosts({}, true).empty());
  CHECK(numbered_hosts(numbers_by_rank{8, 8, 8}).empty());
  CHECK(numbered_hosts(numbers_by_rank{8, 3, 8, 4}) == numbers_by_rank{0, 1, 0, 2});
}
