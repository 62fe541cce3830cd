#include "runtime/algorithms/trees/two_trees.hpp"

#include <doctest/doctest.h>

#include <bit>

using namespace ringmaster;

TEST_CASE("two trees: no rank is inside both, and none has two links of one colour in one direction") {
  for (uint32_t size = 2; size <= 1100; ++size) {
    CAPTURE(size);
    two_trees trees{size};
    uint32_t faults = 0;
    for (uint32_t number = 1; number < size; ++number) {
      faults += trees.children(0, number)[0] != 0 && trees.children(1, number)[0] != 0 ? 1 : 0;
      faults += trees.arrival(0, number) % 2 == trees.arrival(1, number) % 2 ? 1 : 0;
      for (uint32_t tree : {0, 1}) {
        auto [first, second] = trees.children(tree, number);
        faults += second != 0 && trees.arrival(tree, first) >= trees.arrival(tree, second) ? 1 : 0;
        faults += second != 0 && trees.arrival(tree, first) % 2 == trees.arrival(tree, second) % 2 ? 1 : 0;
        auto above = trees.parent(tree, number);
        faults += above != 0 && trees.arrival(tree, above) >= trees.arrival(tree, number) ? 1 : 0;
      }
    }
    CHECK(faults == 0);
    CHECK(trees.last_arrival() <= 2 * std::bit_width(size - 1) - 1);
  }
}
