#include "actors/hosts/node.hpp"

#include "messages/version.hpp"
#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"

#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

simulation_options without_devices(uint64_t seed) {
  simulation_options result;
  result.seed = seed;
  result.devices = 0;
  return result;
}

/// A node of three devices, whose end is noted.
struct one_node {
  explicit one_node(uint64_t seed = 1) : cluster{without_devices(seed)} {
    node_options options;
    options.name = "one";
    options.devices = 3;
    options.device = cluster.device_settings;
    cluster.host_node = cluster.sys.spawn(node, options);
    cluster.self->monitor(cluster.host_node);
  }

  void adopt(const std::vector<uint64_t>& ids) {
    proto::Adopt request;
    request.mutable_device_ids()->Add(ids.begin(), ids.end());
    caf::anon_send(cluster.host_node, request, caf::actor_cast<caf::strong_actor_ptr>(cluster.host));
  }

  /// Why it has ended.
  std::string end() {
    cluster.run_until([&] { return !cluster.self->mailbox().empty(); });
    std::string result;
    cluster.self->receive([&](const caf::down_msg& x) { result = render(x.reason); });
    cluster.host_node = nullptr;
    return result;
  }

  proto::ClusterInfo info() { return cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{}); }

  std::vector<uint64_t> device_ids() {
    std::vector<uint64_t> ids;
    auto now = info();
    for (auto& x : now.devices())
      ids.push_back(x.metadata().deviceid().value());
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  void run_until_there_are(size_t devices) {
    cluster.run_until([&] { return device_ids().size() >= devices; });
  }

  simulated_cluster cluster;
};

using ids = std::vector<uint64_t>;

} // namespace

TEST_CASE("node: hosts the requested devices with the requested ids, and is asked once") {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    one_node x{seed};
    x.adopt({41, 17});
    x.adopt({50, 51, 52, 53}); // by someone who has not heard that it joins already
    x.run_until_there_are(2);
    CHECK(x.device_ids() == ids{17, 41});
    for (int i = 0; i < 100; ++i)
      x.cluster.step();
    x.adopt({60});
    for (int i = 0; i < 100; ++i)
      x.cluster.step();
    auto info = x.info();
    REQUIRE(info.nodes_size() == 1);
    CHECK(info.nodes(0).name() == "one");
    CHECK(info.nodes(0).devices_announced() == 2);
    CHECK(x.device_ids() == ids{17, 41});
    for (auto& device : info.devices())
      CHECK(device.node_id() == info.nodes(0).node_id());
  }
}

TEST_CASE("node: a device that dies comes back as another one") {
  one_node x;
  x.adopt({41, 17});
  x.run_until_there_are(2);
  x.cluster.inject(17, proto::FaultRequest{});
  x.cluster.run_until([&] { return x.device_ids() == ids{41, 42}; });
}

TEST_CASE("node: one that loses all its devices to a suspicion, again and again, starts them again and does not end") {
  one_node x;
  x.adopt({});
  x.run_until_there_are(3);
  uint64_t highest = 3;
  for (int round = 0; round < 4; ++round) { // 12 ends, of which 5 would be too many in 10 s
    for (auto id : x.device_ids()) {
      proto::MemberLost lost;
      lost.set_device_id(id);
      lost.set_cause("its process has not answered for 2.6 s");
      lost.set_noticed_by("suspicion");
      lost.set_fence(true);
      caf::anon_send(x.cluster.host, lost);
    }
    x.cluster.run_until([&] { return x.device_ids().size() == 3 && x.device_ids().front() > highest; });
    highest = x.device_ids().back();
  }
  CHECK(x.info().nodes_size() == 1);
}

TEST_CASE("node: one whose devices are killed on request, again and again, starts them again and does not end") {
  one_node x;
  x.adopt({});
  x.run_until_there_are(3);
  for (int round = 0; round < 12; ++round) { // of which 5 would be too many in 10 s
    const auto first = x.device_ids().front();
    proto::FaultRequest death;
    death.set_kind(proto::FaultRequest::KILL);
    x.cluster.inject(first, death);
    x.cluster.run_until([&] { return x.device_ids().size() == 3 && x.device_ids().front() != first; });
  }
  CHECK(x.info().nodes_size() == 1);
}

TEST_CASE("node: without a list it has as many devices as it was made for") {
  one_node x;
  x.adopt({});
  x.run_until_there_are(3);
  CHECK(x.device_ids() == ids{1, 2, 3});
}

TEST_CASE("node: ends with its coordinator, and its devices with it") {
  one_node x;
  x.adopt({});
  x.run_until_there_are(3);
  x.cluster.self->send_exit(x.cluster.host, caf::exit_reason::kill);
  CHECK(contains(x.end(), "the coordinator is gone: "));
}

TEST_CASE("node: one that no one lets join gives up, and says for how long it has waited") {
  one_node x;
  auto silent = deaf(x.cluster);
  caf::anon_send(x.cluster.host_node, proto::Adopt{}, caf::actor_cast<caf::strong_actor_ptr>(silent));
  CHECK(contains(x.end(), "the coordinator did not let node one join within 5.0 s"));
  CHECK(time_of(x.cluster) >= 5s);
  caf::anon_send_exit(silent, caf::exit_reason::kill);
}

TEST_CASE("node: one that wants another route than the cluster has is not let in, any other hears the cluster's") {
  one_node x;
  simulated_client host{x.cluster};
  auto answer_to = [&](const std::string& route) {
    proto::NodeJoinRequest request;
    request.set_name("two");
    request.set_protocol(protocol_version);
    request.set_route(route);
    auto handle = caf::actor_cast<caf::strong_actor_ptr>(x.cluster.host_node);
    return host.wait_for(host.ask<proto::NodeJoinResponse, caf::strong_actor_ptr>(x.cluster.host, request, handle));
  };
  auto refused = answer_to("link");
  CHECK(refused.code() == static_cast<uint32_t>(errc::invalid_argument));
  CHECK(contains(refused.error(), "node two has route.use \"link\", but its coordinator has \"auto\""));
  CHECK(x.info().nodes_size() == 0);
  CHECK(x.info().route() == "auto");
  CHECK(answer_to("").route() == "auto");
  CHECK(x.info().nodes_size() == 1);
}

TEST_CASE("node: one of another protocol is not let in, and hears both") {
  one_node x;
  simulated_client host{x.cluster};
  auto answer_to = [&](uint32_t protocol) {
    proto::NodeJoinRequest request;
    request.set_name("old");
    request.set_protocol(protocol);
    auto handle = caf::actor_cast<caf::strong_actor_ptr>(x.cluster.host_node);
    return host.wait_for(host.ask<proto::NodeJoinResponse, caf::strong_actor_ptr>(x.cluster.host, request, handle));
  };
  auto ours = fmt::format("the coordinator protocol {} (version {})", protocol_version, ringmaster_version);
  for (uint32_t other : {0u, protocol_version - 1, protocol_version + 1}) {
    auto answer = answer_to(other);
    CAPTURE(answer.error());
    CHECK(answer.code() == static_cast<uint32_t>(errc::wrong_version));
    CHECK(contains(answer.error(),
                   "node old speaks protocol " + (other == 0 ? "4 or an older one" : std::to_string(other))));
    CHECK(contains(answer.error(), ours));
  }
  CHECK(x.info().nodes_size() == 0);
  CHECK(answer_to(protocol_version).error() == "");
  CHECK(x.info().nodes_size() == 1);
}

TEST_CASE("node: one that cannot be reached is tried each five seconds, however often the others are sent") {
  simulated_cluster cluster{without_devices(3)};
  uint32_t tried = 0;
  node_options options;
  options.name = "one";
  options.device = cluster.device_settings;
  options.reach = [&](const node_actor& us, const proto::NodePeers::Peer& there) {
    ++tried;
    proto::NodeApart answer;
    answer.set_peer(there.name());
    answer.set_why("no process listens there");
    caf::anon_send(us, std::move(answer), caf::strong_actor_ptr{});
  };
  cluster.host_node = cluster.sys.spawn(node, options);
  proto::NodePeers all;
  for (auto name : {"zero", "one"}) {
    auto& peer = *all.add_peers();
    peer.set_name(name);
    peer.set_host("127.0.0.1");
    peer.set_port(1);
  }
  constexpr uint32_t told = 10;
  for (uint32_t i = 0; i < told; ++i) { // each time when it was tried in vain
    caf::anon_send(cluster.host_node, all);
    cluster.run_until([&] { return tried > i; });
  }
  cluster.run_until([&] { return time_of(cluster) > 60s; });
  CHECK(tried >= 12);
  CHECK(tried <= told + 13);
}
