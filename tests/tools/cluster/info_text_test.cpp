#include "tools/cluster/info_text.hpp"

#include "messages/status.pb.h"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

using gone_kind = proto::ClusterInfo::Gone;

constexpr uint64_t now_ns = 1'767'225'600'000'000'000; // midnight

void add_node(proto::ClusterInfo& cluster, uint64_t id, const std::string& name, const std::vector<uint64_t>& devices) {
  auto& node = *cluster.add_nodes();
  node.set_node_id(id);
  node.set_name(name);
  node.set_pid(100 + id);
  node.set_host("10.0.0.1");
  node.set_port(7080);
  node.set_hostname("lab");
  node.set_devices_announced(2);
  for (auto number : devices) {
    auto& device = *cluster.add_devices();
    device.set_node_id(id);
    device.mutable_metadata()->mutable_deviceid()->set_value(number);
    device.mutable_metadata()->mutable_minmemaddr()->set_value(number << 40);
    device.mutable_metadata()->mutable_maxmemaddr()->set_value((number << 40) + (64u << 20));
  }
}

gone_kind& add_gone(proto::ClusterInfo& cluster, gone_kind::What what, uint64_t id, const std::string& name,
                    uint64_t ms) {
  auto& x = *cluster.add_gone();
  x.set_what(what);
  x.set_id(id);
  x.set_name(name);
  x.set_cause("its process is gone");
  x.set_time_ns(now_ns + ms * 1'000'000);
  return x;
}

/// Node-10 has devices 0x1 and 0x2, node-9 0x5; node-3, which is lost, had 0x3 and 0x4. Communicator 7 goes on.
proto::ClusterInfo cluster_with_a_loss() {
  proto::ClusterInfo result;
  add_node(result, 1, "node-10", {1, 2});
  add_node(result, 3, "node-9", {5});
  for (int i : {0, 2})
    result.mutable_devices(i)->add_comm_ids(7);
  auto& group = *result.add_communicators();
  group.set_comm_id(7);
  group.set_epoch(3);
  group.set_operations_in_flight(1);
  group.add_device_ids(5);
  group.add_device_ids(1);
  group.set_async_error("rank 2 (device 0x3) was lost: its process is gone");
  add_gone(result, gone_kind::DEVICE, 9, "node-3", 0); // long before
  for (uint64_t id : {4, 3})
    add_gone(result, gone_kind::DEVICE, id, "node-3", 60'000 + id).add_comm_ids(7);
  add_gone(result, gone_kind::NODE, 2, "node-3", 60'001);
  return result;
}

} // namespace

TEST_CASE("info text: tells of nodes by name, of devices, communicators and what is gone") {
  CHECK(info_text(cluster_with_a_loss(), "10.0.0.1:7077", std::chrono::hours{1})
        == R"(coordinator at 10.0.0.1:7077: 2 nodes, 3 devices (1 free), 1 communicator
node-9, process 103 on lab, at 10.0.0.1:7080, 1 of its 2 devices here
  device 0x5 64 MiB, rank 0 of communicator 7
node-10, process 101 on lab, at 10.0.0.1:7080
  device 0x1 64 MiB, rank 1 of communicator 7
  device 0x2 64 MiB, free
communicator 7: epoch 3, 2 ranks on 0x5 0x1, 1 operation in flight; policy shrink, goes with its client
  rank 2 (device 0x3) was lost: its process is gone
gone
  01:00:00 device 0x9 of node-3 is lost: its process is gone
  01:01:00 device 0x4 of node-3 is lost: its process is gone
  01:01:00 device 0x3 of node-3 is lost: its process is gone
  01:01:00 node node-3 is lost: its process is gone
)");
  proto::ClusterInfo lossy;
  lossy.set_journal_trouble("the journal lacks 3 records");
  CHECK(info_text(lossy, "h:1", {}).ends_with("0 communicators\nthe journal lacks 3 records\n"));
  proto::ClusterInfo open;
  open.set_insecure(true);
  CHECK(info_text(open, "h:1", {}).ends_with(fmt::format("0 communicators\n{}\n", insecure_text)));
  CHECK(info_text({}, "h:1", {}) == "coordinator at h:1: 0 nodes, 0 devices (0 free), 0 communicators\n");
}

TEST_CASE("info text: a communicator that does not answer is listed with what is known of it") {
  auto cluster = cluster_with_a_loss();
  cluster.mutable_communicators(0)->set_silent("it did not answer within 10.0 s");
  cluster.mutable_communicators(0)->set_outlives_client(true);
  auto text = info_text(cluster, "h:1", {});
  CHECK(text.find("device 0x5 64 MiB, in communicator 7\n") != std::string::npos);
  CHECK(text.find(
          "communicator 7: 2 ranks on 0x5 0x1, policy shrink, stays until it is destroyed; it does not say more: it "
          "did not answer within 10.0 s\n")
        != std::string::npos);
}

TEST_CASE("info text: a lost node's devices and communicators are reported once all is known") {
  auto cluster = cluster_with_a_loss();
  CHECK(loss_of(cluster, "node-3")->text == "devices 0x3 0x4 of communicator 7 (epoch 3 on 2 ranks)");
  CHECK(!loss_of(cluster, "node-9"));
  auto changing = cluster;
  changing.mutable_communicators(0)->add_device_ids(3);
  CHECK(!loss_of(changing, "node-3"));
  auto half = cluster;
  half.add_devices()->set_node_id(2);
  CHECK(!loss_of(half, "node-3"));
  auto ended = cluster;
  ended.mutable_communicators(0)->set_async_error("communicator 7 has ended: rank 2 was lost");
  ended.mutable_communicators(0)->set_ended(true);
  CHECK(loss_of(ended, "node-3")->text == "devices 0x3 0x4 of communicator 7 (ended)");
  auto free = cluster;
  free.mutable_gone(1)->clear_comm_ids();
  free.mutable_gone(2)->clear_comm_ids();
  CHECK(loss_of(free, "node-3")->text == "devices 0x3 0x4, which were free");
}

TEST_CASE("info text: a communicator that has ended has no ranks, and says why once") {
  auto cluster = cluster_with_a_loss();
  auto& group = *cluster.mutable_communicators(0);
  group.set_async_error("communicator 7 has ended: no device is left");
  group.set_ended(true);
  group.set_error("communicator 7 has ended: no device is left");
  CHECK(info_text(cluster, "h:1", {})
          .find("communicator 7: ended in epoch 3, it still has 0x5 0x1; policy shrink, goes with its client\n"
                "  communicator 7 has ended: no device is left\ngone\n")
        != std::string::npos);
  cluster.clear_devices();
  CHECK(info_text(cluster, "h:1", {}).find("ended in epoch 3, none of its devices is left; ") != std::string::npos);
  CHECK(communicators_of(cluster) == std::set<communicator_id>{{7}}); // it is there to be destroyed
}

TEST_CASE("info text: JSON has the names of the fields, zeros as well") {
  auto json = json_of(cluster_with_a_loss());
  for (auto part : {R"("name":"node-9")", R"("epoch":"3")", R"("operations_in_flight":1)",
                    R"("cause":"its process is gone")", R"("left":false)"})
    CHECK_MESSAGE(json.find(part) != std::string::npos, json);
  CHECK(json.find('\n') == std::string::npos);
}

TEST_CASE("info text: JSON has no reduction for operations that do not reduce") {
  proto::ClusterStatus status;
  auto& communicator = *status.add_communicators();
  for (auto kind : {proto::ALL_REDUCE, proto::ALL_GATHER, proto::REDUCE_SCATTER, proto::BROADCAST})
    communicator.add_operations()->mutable_collective()->set_kind(kind);
  const auto json = json_of(status);
  size_t reductions = 0;
  for (auto at = json.find("\"op\":"); at != json.npos; at = json.find("\"op\":", at + 1))
    ++reductions;
  CHECK_MESSAGE(reductions == 2, json);
  CHECK(json.find(R"("kind":"BROADCAST","algorithm":"","datatype":"FLOAT64","count":"0")") != json.npos);
}
