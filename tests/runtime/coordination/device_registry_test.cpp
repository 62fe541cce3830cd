#include "runtime/coordination/device_registry.hpp"

#include "messages/errc.hpp"
#include "tests/runtime/coordination/devices.hpp"

using namespace ringmaster;
using namespace ringmaster::test;

TEST_CASE("device_registry: a node's name is its alone, as long as it lives") {
  device_registry registry;
  proto::NodeJoinRequest about;
  about.set_name("node-3");
  about.set_pid(812);
  about.set_hostname("hostb");
  auto first = registry.node_joined(about, nullptr);
  REQUIRE(first);
  auto second = registry.node_joined(about, nullptr);
  REQUIRE_FALSE(second);
  CHECK(second.error() == errc::in_use);
  CHECK(render(second.error()).find("the name \"node-3\" is taken: process 812 on hostb joined with it") == 0);
  CHECK(registry.name_of(*first) == "node-3");
  CHECK(registry.node_gone(*first)->about.name() == "node-3");
  CHECK_FALSE(registry.node_gone(*first));
  CHECK(registry.name_of(*first) == "");
  auto again = registry.node_joined(about, nullptr);
  REQUIRE(again);
  CHECK(registry.name_of(*again) == "node-3");
  CHECK(*again > *first); // a number is never used twice
}

TEST_CASE("device_registry: once nodes matter, devices are listed with them, earlier ones too") {
  device_registry registry;
  proto::NodeJoinRequest about;
  about.set_name("rank-0");
  about.set_pid(812);
  about.set_hostname("hostb");
  auto joining_there = [node = *registry.node_joined(about, nullptr)](uint64_t id) {
    auto result = joining(id);
    result.node = node;
    return result;
  };
  registry.joined(joining_there(1));
  CHECK(registry.text_of(device_id{1}) == "device 0x1");
  registry.tell_places();
  registry.joined(joining_there(2));
  CHECK(registry.text_of(device_id{1}) == "device 0x1, rank-0 on hostb, pid 812");
  CHECK(registry.text_of(device_id{2}) == "device 0x2, rank-0 on hostb, pid 812");
}

TEST_CASE("device_registry: a node that is gone is no way that another one lacks, no matter which word comes first") {
  device_registry registry;
  proto::NodeJoinRequest about;
  about.set_name("a");
  auto a = *registry.node_joined(about, nullptr);
  about.set_name("b");
  auto b = *registry.node_joined(about, nullptr);
  registry.node_apart(a, "b", make_error(errc::unreachable, "unplugged"));
  CHECK(registry.nodes().at(a).apart == std::map<std::string, std::string>{{"b", "unplugged"}});
  registry.node_apart(a, "b", {});
  CHECK(registry.nodes().at(a).apart.empty());
  registry.node_apart(a, "b", make_error(errc::unreachable, "unplugged"));
  registry.node_gone(b);
  CHECK(registry.nodes().at(a).apart.empty());
  registry.node_apart(a, "b", make_error(errc::unreachable, "unplugged"));
  CHECK(registry.nodes().at(a).apart.empty());
}

TEST_CASE("device_registry: nodes are apart from each other when both have said so, and only while both are there") {
  device_registry registry;
  proto::NodeJoinRequest about;
  about.set_name("one");
  auto one = *registry.node_joined(about, nullptr);
  about.set_name("two");
  auto two = *registry.node_joined(about, nullptr);
  registry.node_apart(one, "two", make_error(errc::unreachable, "its connection was lost"));
  CHECK(registry.apart_from_each_other(one, "two").empty());
  registry.node_apart(two, "one", make_error(errc::unreachable, "its connection was lost"));
  auto both = registry.apart_from_each_other(two, "one");
  REQUIRE(both.size() == 2);
  CHECK(both[0].about.name() == "two");
  CHECK(both[1].about.name() == "one");
  registry.node_apart(two, "one", {});
  CHECK(registry.apart_from_each_other(one, "two").empty());
  registry.node_gone(two);
  registry.node_apart(one, "two",
                      make_error(errc::unreachable,
                                 "its connection was lost")); // word of it comes behind that of the node's end
  CHECK(registry.nodes().at(one).apart.empty());
}

TEST_CASE(
  "device_registry: devices of a node are neighbours, and nodes of a host, in the order of their first device") {
  device_registry registry;
  std::map<std::string, node_id> nodes;
  for (std::string name : {"a1", "b1", "a2"}) {
    proto::NodeJoinRequest about;
    about.set_name(name);
    about.set_hostname(name.substr(0, 1));
    nodes[name] = *registry.node_joined(about, nullptr);
  }
  auto join = [&](uint64_t id, const std::string& node) {
    auto x = joining(id);
    x.node = nodes[node];
    registry.joined(std::move(x));
  };
  join(1, "a1");
  join(2, "b1");
  join(3, "a2");
  join(4, "b1");
  join(5, "a2");
  join(6, "a1");
  auto ids = [](std::initializer_list<uint64_t> values) {
    device_ids result;
    for (auto x : values)
      result.push_back(device_id{x});
    return result;
  };
  CHECK(*registry.free_devices(6, "CommInit") == ids({1, 6, 3, 5, 2, 4}));
  CHECK(*registry.free_devices(3, "CommInit") == ids({1, 6, 3}));
  registry.take(device_id{1}, communicator_id{7});
  CHECK(*registry.free_devices(5, "CommInit") == ids({2, 4, 3, 5, 6}));
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
  CHECK(cause_of(dead.error()) == "it was killed");
  CHECK(render(registry.known(device_id{2}).error()) == "there is no device 0x2; the cluster has 0 devices");
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
        == "CommInit asks for 3 devices, but 2 are free: the cluster has 4, 2 of them in communicators");
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
