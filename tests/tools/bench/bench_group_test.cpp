#include "tools/bench/bench_group.hpp"

#include "messages/errc.hpp"
#include "tools/bench/bench_sizes.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

/// `nodes` of two devices each, with 64 MiB; what the devices of one have in common is called by its number.
proto::ClusterInfo cluster_of(uint32_t nodes) {
  proto::ClusterInfo result;
  for (uint32_t i = 1; i <= nodes; ++i) {
    auto& node = *result.add_nodes();
    node.set_node_id(i);
    node.set_name("node-" + std::to_string(i));
    node.set_pid(100 + i);
    node.set_hostname("lab");
  }
  for (uint32_t i = 0; i < 2 * nodes; ++i) {
    auto& device = *result.add_devices();
    device.set_node_id(i / 2 + 1);
    device.mutable_metadata()->mutable_deviceid()->set_value(i + 1);
    device.mutable_metadata()->mutable_minmemaddr()->set_value(uint64_t{i + 1} << 40);
    device.mutable_metadata()->mutable_maxmemaddr()->set_value((uint64_t{i + 1} << 40) + (64u << 20));
  }
  return result;
}

bench_options options_of(const std::vector<std::string>& args) {
  bench_arguments read;
  option_table table{"ringmaster bench"};
  read.add_to(table);
  REQUIRE(!table.read(args));
  auto parsed = read.options();
  REQUIRE(parsed);
  return *parsed;
}

std::string problem_of(bench_options& x, const proto::ClusterInfo& cluster) {
  return render(fit_to_cluster(x, cluster));
}

} // namespace

TEST_CASE("bench group: takes the free devices that are there, eight at most") {
  for (auto [nodes, devices] : {std::pair{1u, 2u}, {2u, 4u}, {4u, 8u}, {5u, 8u}}) {
    auto x = options_of({});
    CHECK(!fit_to_cluster(x, cluster_of(nodes)));
    CHECK(x.devices == devices);
    CHECK(x.peer < devices);
  }
  auto cluster = cluster_of(3);
  cluster.mutable_devices(1)->add_comm_ids(7);
  auto x = options_of({"send_recv", "--root", "4"});
  CHECK(!fit_to_cluster(x, cluster));
  CHECK(x.devices == 5);
  CHECK(x.peer == 0); // the rank after the root
}

TEST_CASE("bench group: refuses what the cluster does not have, and says who has it") {
  auto cluster = cluster_of(2);
  auto more = options_of({"--devices", "5"});
  CHECK(problem_of(more, cluster) == "the bench wants 5 devices, and the cluster has 4 devices");
  for (int i = 0; i < 3; ++i)
    cluster.mutable_devices(i)->add_comm_ids(i == 0 ? 9 : 7);
  auto some = options_of({});
  CHECK(problem_of(some, cluster)
        == "the bench wants 2 devices, and the cluster has 4 devices, of which 1 is free: the others belong to "
           "communicators "
           "7, 9, which `ringmaster destroy 7 9` ends");
  auto rooted = options_of({"broadcast", "--root", "6"});
  CHECK(problem_of(rooted, cluster_of(2)) == "--root 6: on 4 devices ranks are 0 to 3");
  auto peered = options_of({"send_recv", "--peer", "6"});
  CHECK(problem_of(peered, cluster_of(2)) == "--peer 6: on 4 devices ranks are 0 to 3");
}

TEST_CASE("bench group: sizes are what the devices' memory takes, unless they were asked for") {
  auto x = options_of({});
  auto cluster = cluster_of(2);
  CHECK(!fit_to_cluster(x, cluster));
  CHECK(sizes_of(x).back() == 16u << 20); // of 8, 64, ...: 64 MiB is not among them
  cluster.mutable_devices(3)->mutable_metadata()->mutable_maxmemaddr()->set_value((uint64_t{4} << 40) + (8u << 20));
  auto smaller = options_of({});
  CHECK(!fit_to_cluster(smaller, cluster));
  CHECK(smaller.max_bytes == 2u << 20);
  CHECK(memory_for(smaller) <= 8u << 20);
  auto asked = options_of({"--max-bytes", "64M"});
  CHECK(
    problem_of(asked, cluster).find("these have 8 MiB: --max-bytes 2097152 at most, or a larger device.memory-bytes")
    != std::string::npos);
  auto one = options_of({"--min-bytes", "32M", "--max-bytes", "32M"});
  CHECK(problem_of(one, cluster).find("these have 8 MiB: a larger device.memory-bytes") != std::string::npos);
}

TEST_CASE("bench group: says which ranks are on which node") {
  auto cluster = cluster_of(3);
  gpu_sim::CommInitResponse group;
  for (uint64_t id : {3, 4, 1, 5, 2, 9})
    group.add_devices()->mutable_deviceid()->set_value(id);
  CHECK(placement_text(group, cluster)
        == "# ranks 0-1 on node-2, host lab, process 102\n# ranks 2, 4 on node-1, host lab, process 101\n# rank 3 on "
           "node-3, host lab, process 103\n"
           "# rank 5 on a node that is gone\n");
}
