#include "runtime/schedule/bus_bandwidth.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("bus bandwidth: the factors are nccl-tests', for every kind") {
  for (uint32_t ranks : {1, 2, 4, 8}) {
    const auto others = static_cast<double>(ranks - 1) / ranks; // exact for powers of two
    CAPTURE(ranks);
    for (auto kind : collective_kinds()) {
      CAPTURE(name_of(kind));
      double expected = others;
      if (kind == proto::ALL_REDUCE)
        expected = 2 * others;
      else if (kind == proto::BROADCAST || kind == proto::REDUCE || kind == proto::SEND_RECV || kind == proto::BARRIER)
        expected = 1;
      CHECK(bus_bandwidth_factor(kind, ranks) == expected);
    }
  }
}

TEST_CASE("bus bandwidth: a size is all blocks of the side that has them, or the whole") {
  for (auto kind : {proto::ALL_GATHER, proto::REDUCE_SCATTER, proto::ALL_TO_ALL, proto::GATHER, proto::SCATTER}) {
    CAPTURE(name_of(kind));
    CHECK(size_count(kind, {.world_size = 4, .count = 5}) == 20);
    CHECK(count_for_size(kind, 4, 23) == 5);
  }
  for (auto kind : {proto::ALL_REDUCE, proto::REDUCE, proto::BROADCAST, proto::SEND_RECV}) {
    CAPTURE(name_of(kind));
    CHECK(size_count(kind, {.world_size = 4, .count = 5}) == 5);
    CHECK(count_for_size(kind, 4, 23) == 23);
  }
  CHECK(size_count(proto::BARRIER, {.world_size = 4, .count = 5}) == 0);
  CHECK(size_count(proto::SCATTER, {.world_size = 3, .count = 9, .counts = {1, 0, 5}}) == 6);
  // An average rank's, of what all ranks send.
  CHECK(size_count(proto::ALL_TO_ALL, {.world_size = 2, .counts = {1, 2, 3, 8}}) == 7);
}
