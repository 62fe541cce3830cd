#include "runtime/links/link_frames.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

using ranges = std::vector<byte_range>;

TEST_CASE("block cuts: a block that is not worth it stays whole") {
  CHECK(cut_block(10, 4, 100, 1) == ranges{{0, 10}});
  CHECK(cut_block(199, 4, 100, 1) == ranges{{0, 199}});
  CHECK(cut_block(1000, 1, 100, 1) == ranges{{0, 1000}});
  CHECK(cut_block(1000, 0, 100, 1) == ranges{{0, 1000}});
}

TEST_CASE("block cuts: the pieces are of about the same size, and of whole elements") {
  CHECK(cut_block(200, 4, 100, 1) == ranges{{0, 100}, {100, 200}});
  CHECK(cut_block(1001, 3, 100, 1) == ranges{{0, 333}, {333, 666}, {666, 1001}});
  CHECK(cut_block(1200, 5, 100, 16) == ranges{{0, 240}, {240, 480}, {480, 720}, {720, 960}, {960, 1200}});
  CHECK(cut_block(1000, 3, 100, 8) == ranges{{0, 328}, {328, 664}, {664, 1000}});
}

TEST_CASE("block cuts: every byte is in one piece") {
  for (uint64_t bytes = 1; bytes < 300; ++bytes)
    for (uint64_t pieces : {1u, 2u, 7u, 64u}) {
      uint64_t at = 0;
      for (auto [begin, end] : cut_block(bytes, pieces, 3, 5)) {
        CHECK(begin == at);
        CHECK(end > begin);
        at = end;
      }
      CHECK(at == bytes);
    }
}
