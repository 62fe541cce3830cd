#include "runtime/coordination/derived_groups.hpp"

#include "messages/errc.hpp"
#include "tests/runtime/coordination/devices.hpp"

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

device_ids ids(std::initializer_list<uint64_t> values) {
  device_ids result;
  for (auto x : values)
    result.push_back(device_id{x});
  return result;
}

const device_ids ranks = ids({7, 5, 9, 3});

device_registry registry_of(std::initializer_list<uint64_t> values) {
  device_registry result;
  for (auto x : values)
    result.joined(joining(x));
  return result;
}

rank_groups made(const proto::CommDeriveRequest& x, const device_registry& devices = {}) {
  auto result = derived_groups(x, ranks, devices);
  REQUIRE(result);
  return *result;
}

caf::error problem_of(const proto::CommDeriveRequest& x, const device_registry& devices = {}) {
  auto result = derived_groups(x, ranks, devices);
  REQUIRE_FALSE(result);
  return result.error();
}

} // namespace

TEST_CASE("derived_groups: a split puts those of one colour together, by key, then by rank") {
  proto::CommDeriveRequest x;
  CHECK(made(x) == rank_groups{{0, ranks}});
  x.mutable_split();
  CHECK(made(x) == rank_groups{{0, ranks}}); // a duplicate
  for (int color : {1, -1, 0, 1})
    x.mutable_split()->add_colors(color);
  CHECK(made(x) == rank_groups{{0, ids({9})}, {1, ids({7, 3})}});
  for (int key : {2, 0, 0, 1})
    x.mutable_split()->add_keys(key);
  CHECK(made(x) == rank_groups{{0, ids({9})}, {1, ids({3, 7})}});
  x.mutable_split()->clear_colors();
  CHECK(made(x) == rank_groups{{0, ids({5, 9, 3, 7})}});
}

TEST_CASE("derived_groups: a split by the wrong number of colours or by other callers is refused") {
  proto::CommDeriveRequest x;
  x.mutable_split()->add_colors(0);
  CHECK(problem_of(x) == errc::invalid_argument);
  CHECK(render(problem_of(x)) == "split: 1 colours for 4 ranks; give one a rank, or none");
  x.mutable_split()->clear_colors();
  for (uint64_t id : {7, 5, 9, 4})
    x.mutable_split()->add_device_ids(id);
  CHECK(render(problem_of(x)).find("devices 0x7, 0x5, 0x9, 0x4 called it") != std::string::npos);
  x.mutable_split()->set_device_ids(3, 3);
  CHECK(made(x) == rank_groups{{0, ranks}});
}

TEST_CASE("derived_groups: shrink leaves the others in their order, but needs at least one") {
  proto::CommDeriveRequest x;
  x.mutable_shrink()->add_ranks(2);
  x.mutable_shrink()->add_ranks(0);
  CHECK(made(x) == rank_groups{{0, ids({5, 3})}});
  x.mutable_shrink()->add_ranks(4);
  CHECK(render(problem_of(x)) == "shrink: there is no rank 4; the communicator has ranks 0 to 3");
  x.mutable_shrink()->clear_ranks();
  for (uint32_t rank = 0; rank < 4; ++rank)
    x.mutable_shrink()->add_ranks(rank);
  CHECK(render(problem_of(x)) == "shrink: no rank would be left");
}

TEST_CASE("derived_groups: grow puts free devices, or those that are named, behind the others") {
  auto devices = registry_of({3, 5, 7, 9, 11, 12});
  for (auto id : ranks)
    devices.take(id, communicator_id{1});
  proto::CommDeriveRequest x;
  x.mutable_grow()->set_devices(1);
  CHECK(made(x, devices) == rank_groups{{0, ids({7, 5, 9, 3, 11})}});
  x.mutable_grow()->set_devices(3);
  CHECK(problem_of(x, devices) == errc::too_few_devices);
  x.mutable_grow()->add_device_ids(12);
  CHECK(made(x, devices) == rank_groups{{0, ids({7, 5, 9, 3, 12})}});
}
