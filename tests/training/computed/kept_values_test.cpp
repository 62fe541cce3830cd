// What a rank keeps between steps, and when it is gone.
#include "training/computed/kept_values.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

const kept_part first{value_kind::weight, 0}, second{value_kind::weight, 1};

block_pointer block_in(value_store& store) {
  auto result = store.make(8, 8, true);
  REQUIRE(result.engaged());
  return *result;
}

} // namespace

TEST_CASE("kept values: what a step has made is what the next one begins with") {
  std::vector<std::byte> memory(1 << 12);
  value_store store{memory, 64};
  kept_values kept;
  CHECK(!kept.begin(0));
  const auto made = block_in(store);
  kept.stage(first, made);
  CHECK(kept.find(first) == nullptr);
  CHECK(!kept.begin(1));
  CHECK(kept.find(first) == made);
  CHECK(kept.made().empty());
  CHECK(kept.step() == 1);
  CHECK(kept.begin(3)); // step 2 was never made
}

TEST_CASE("kept values: a step that begins again has made nothing, and what came from elsewhere for it is gone") {
  std::vector<std::byte> memory(1 << 12);
  value_store store{memory, 64};
  kept_values kept;
  CHECK(!kept.begin(0));
  kept.stage(first, block_in(store));
  kept.restore(second, block_in(store));
  CHECK(kept.find(second) != nullptr);
  CHECK(!kept.begin(0));
  CHECK(kept.made().empty());
  CHECK(kept.find(second) == nullptr);
  CHECK(kept.begin(1)); // it has not been made
}
