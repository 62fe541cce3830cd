#include "runtime/coordination/drain_desk.hpp"

#include "messages/errc.hpp"
#include "tests/runtime/coordination/devices.hpp"

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// Two nodes of two devices; communicators on some of them.
struct two_nodes {
  device_registry devices;
  communicator_registry communicators;
  drain_desk desk{devices, communicators};
  node_id first, second;

  two_nodes() : first(join("node-1", {1, 2})), second(join("node-2", {3, 4})) {}

  node_id join(const std::string& name, std::initializer_list<uint64_t> ids) {
    proto::NodeJoinRequest about;
    about.set_name(name);
    auto node = *devices.node_joined(about, nullptr);
    for (auto id : ids) {
      auto x = joining(id);
      x.node = node;
      devices.joined(std::move(x));
    }
    return node;
  }
  void make(communicator_id id, proto::FailurePolicy policy, std::initializer_list<uint64_t> ids) {
    known_communicator about;
    about.policy = policy;
    while (communicators.new_id() < id) {
    }
    communicators.made(id, about);
    for (auto device : ids)
      devices.take({device}, id);
  }
};

} // namespace

TEST_CASE("drain_desk: no one gets the devices of a node that is drained") {
  two_nodes x;
  CHECK(x.devices.free_count() == 4);
  x.desk.begin(x.second, 1);
  CHECK(x.devices.free_count() == 2);
  CHECK(x.devices.free_devices(2, "CommInit")->back() == device_id{2});
  CHECK_FALSE(x.devices.free_devices(3, "CommInit"));
  auto named = x.devices.check({{device_id{1}, device_id{3}}});
  CHECK(code_of(named) == errc::in_use);
  CHECK(render(named) == "device 0x3 is about to leave: node node-2 is drained");
}

TEST_CASE("drain_desk: each communicator is asked once, and the node is asked to stop when all have let go") {
  two_nodes x;
  x.make({7}, proto::SHRINK, {2, 3, 4});
  x.make({8}, proto::REPLACE, {1, 3});
  x.make({9}, proto::SHRINK, {1, 2});
  x.desk.begin(x.second, 1);
  auto step = x.desk.next(x.second);
  CHECK_FALSE(step.end_node);
  REQUIRE(step.ask.size() == 2);
  CHECK(step.ask.at({7}) == device_ids{{3}, {4}});
  CHECK(step.ask.at({8}) == device_ids{{3}});
  CHECK(x.desk.next(x.second).ask.empty());
  x.desk.answered(x.second, {7}, step.ask.at({7}), {2}, {});
  CHECK_FALSE(x.desk.next(x.second).end_node);
  CHECK(x.devices.members_of({7}) == device_ids{{2}});
  x.desk.answered(x.second, {8}, step.ask.at({8}), {5}, {});
  CHECK(x.desk.next(x.second).end_node);
  CHECK_FALSE(x.desk.next(x.second).end_node); // it was asked already
  auto ended = x.desk.gone(x.second);
  REQUIRE(ended);
  CHECK(ended->asked_to_exit);
  CHECK(ended->to == std::vector<uint64_t>{1});
  CHECK(ended->done
        == std::vector<std::string>{"communicator 7 goes on without device 0x3 0x4, in epoch 2",
                                    "communicator 8 goes on without device 0x3, in epoch 5, with spares"});
  CHECK_FALSE(x.desk.gone(x.second));
  CHECK(x.desk.is_given(x.second)); // its devices' ends may be heard of after its own
  CHECK_FALSE(x.desk.is_given(x.first));
}

TEST_CASE("drain_desk: one that cannot let go is asked again at the next event, and named when the limit passes") {
  two_nodes x;
  x.make({7}, proto::REPLACE, {2, 3});
  x.make({8}, proto::ABORT, {1, 4});
  x.desk.begin(x.second, 1);
  x.desk.begin(x.second, 2);
  CHECK(x.desk.next(x.second).ask.size() == 1); // of the other one the end is waited for
  x.desk.answered(x.second, {7}, {{3}}, {1}, make_error(errc::refused, "no spare is free"));
  CHECK(x.desk.next(x.second).ask.count({7}) == 1);
  x.desk.answered(x.second, {7}, {{3}}, {1}, make_error(errc::refused, "no spare is free"));
  auto waited = x.desk.expired(1);
  REQUIRE(waited);
  CHECK(*waited
        == "communicator 7 has its device 0x3: no spare is free; communicator 8 has its device 0x4: its policy is "
           "\"abort\", so it must end first");
  CHECK_FALSE(x.desk.expired(1));
  CHECK(x.devices.free_count() == 0); // someone else waits still
  waited = x.desk.expired(2);
  REQUIRE(waited);
  CHECK(waited->ends_with("; its devices are available for new communicators again"));
  CHECK(x.desk.nodes().empty());
  x.devices.leave(communicator_id{7});
  CHECK(x.devices.free_count() == 2);
}

TEST_CASE("drain_desk: a node that exits before it was asked to is no success") {
  two_nodes x;
  x.make({7}, proto::SHRINK, {2, 3});
  x.desk.begin(x.second, 1);
  x.desk.next(x.second);
  auto ended = x.desk.gone(x.second);
  REQUIRE(ended);
  CHECK_FALSE(ended->asked_to_exit);
  CHECK_FALSE(x.desk.is_given(x.second));
  CHECK(ended->to.size() == 1);
  x.desk.answered(x.second, {7}, {{3}}, {2}, {}); // late: no one waits, but the device has left
  CHECK(x.devices.members_of({7}) == device_ids{{2}});
}
