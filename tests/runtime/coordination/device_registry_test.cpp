#include "runtime/coordination/device_registry.hpp"

#include "messages/errc.hpp"
#include "tests/runtime/coordination/devices.hpp"

using namespace ringmaster;
using namespace ringmaster::test;

TEST_CASE("device_registry: gives every id once, the one that is wanted where it can") {
  device_registry registry;
  registry.start_ids_above(node_id{3}, device_id{10});
  CHECK(registry.give_id({}) == device_id{11});
  CHECK(registry.give_id(device_id{20}) == device_id{20});
  CHECK(registry.give_id(device_id{20}) == device_id{21});
  CHECK(registry.give_id(device_id{5}) == device_id{5}); // of an earlier run, and wanted again
  CHECK(registry.give_id(device_id{5}) == device_id{22});
  registry.joined(joining(30)); // one that chose its own
  CHECK(registry.give_id({}) == device_id{31});
  CHECK(registry.node_joined({}, nullptr) == node_id{4});
}

TEST_CASE("device_registry: a node's name is its alone, as long as it lives") {
  device_registry registry;
  proto::NodeJoinRequest about;
  about.set_name("node-3");
  auto first = registry.node_joined(about, nullptr);
  auto second = registry.node_joined(about, nullptr);
  CHECK(registry.name_of(first) == "node-3");
  CHECK(registry.name_of(second) == "node-3-2");
  about.set_name("node-3-2");
  CHECK(registry.name_of(registry.node_joined(about, nullptr)) == "node-3-2-2");
  CHECK(registry.node_gone(first)->about.name() == "node-3");
  CHECK_FALSE(registry.node_gone(first));
  CHECK(registry.name_of(first) == "");
  about.set_name("node-3");
  auto again = registry.node_joined(about, nullptr);
  CHECK(registry.name_of(again) == "node-3");
  CHECK(again > second); // a number is never used twice
}

TEST_CASE("device_registry: says how a device went, and of one that never was how many there are") {
  device_registry registry;
  registry.joined(joining(1));
  REQUIRE(registry.known(device_id{1}));
  REQUIRE(registry.gone(device_id{1}, "it was killed"));
  CHECK_FALSE(registry.gone(device_id{1}, "once more"));
  auto dead = registry.known(device_id{1});
  REQUIRE_FALSE(dead);
  CHECK(dead.error() == errc::unknown_device);
  CHECK(render(dead.error()) == "device 0x1 has died: it was killed");
  CHECK(render(registry.known(device_id{2}).error()) == "there is no device 0x2; 0 devices are here");
}

TEST_CASE("device_registry: a device is free when it is in no communicator") {
  device_registry registry;
  for (uint64_t id : {4, 1, 3, 2})
    registry.joined(joining(id));
  registry.take(device_id{1}, communicator_id{7});
  registry.take(device_id{1}, communicator_id{8});
  registry.take(device_id{3}, communicator_id{7});
  CHECK(*registry.free_devices(2, "CommInit") == device_ids{device_id{2}, device_id{4}});
  auto too_many = registry.free_devices(3, "CommInit");
  REQUIRE_FALSE(too_many);
  CHECK(too_many.error() == errc::too_few_devices);
  CHECK(render(too_many.error())
        == "CommInit asks for 3 devices, but 2 are free: 4 are here, 2 of them in communicators");
  CHECK(registry.leave(communicator_id{7}) == device_ids{device_id{1}, device_id{3}});
  CHECK(registry.free_count() == 3);
  registry.leave(device_id{1}, communicator_id{8});
  CHECK(registry.free_count() == 4);
}

TEST_CASE("device_registry: a group wants living devices, each once") {
  device_registry registry;
  registry.joined(joining(1));
  registry.joined(joining(2));
  device_ids both{device_id{1}, device_id{2}};
  CHECK_FALSE(registry.check({both, both})); // a device may be in many groups
  CHECK(registry.check({both, {device_id{3}}}) == errc::unknown_device);
  auto twice = registry.check({{device_id{2}, device_id{1}, device_id{2}}});
  CHECK(twice == errc::invalid_argument);
  CHECK(render(twice) == "device 0x2 would be rank 0 and rank 2 of one communicator");
}

TEST_CASE("device_registry: a range lies within a device's memory, or not, wherever it ends") {
  auto about = joining(1).metadata; // [2^40, 2^40 + 100)
  auto min = about.minmemaddr().value();
  CHECK(within(about, min, 100));
  CHECK(within(about, min + 100, 0));
  CHECK_FALSE(within(about, min - 1, 1));
  CHECK_FALSE(within(about, min, 101));
  CHECK_FALSE(within(about, min + 99, UINT64_MAX));
}
