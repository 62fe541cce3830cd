#include "tools/bench/bench.hpp"

#include "messages/errc.hpp"
#include "tests/tools/clients/cluster_info.hpp"
#include "tools/bench/bench_options.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

caf::expected<bench_options> fitted(const std::vector<std::string>& args, const proto::ClusterInfo& cluster) {
  bench_arguments read;
  option_table table{"ringmaster bench"};
  read.add_to(table);
  REQUIRE(!table.read(args));
  REQUIRE(read.options(read.fewest_devices()));
  return fit_to_cluster(read, cluster);
}

std::string problem_of(const std::vector<std::string>& args, const proto::ClusterInfo& cluster) {
  return render(fitted(args, cluster).error());
}

} // namespace

TEST_CASE("bench group: takes all free devices, or the given number") {
  for (auto [nodes, devices] : {std::pair{1u, 2u}, {2u, 4u}, {5u, 10u}}) {
    auto x = fitted({}, cluster_of(nodes));
    REQUIRE(x);
    CHECK(x->devices == devices);
    CHECK(x->peer < devices);
  }
  CHECK(fitted({"--devices", "3"}, cluster_of(2))->devices == 3);
  CHECK(fitted({"broadcast", "--root", "9"}, cluster_of(5))->root == 9); // more than the 8 of one process
  CHECK(fitted({"all_gather"}, cluster_of(16))->min_bytes == 512);       // an element for each of 32 ranks
  auto cluster = cluster_of(3);
  cluster.mutable_devices(1)->add_comm_ids(7);
  auto x = fitted({"send_recv", "--root", "4"}, cluster);
  REQUIRE(x);
  CHECK(x->devices == 5);
  CHECK(x->peer == 0); // the rank after the root
}

TEST_CASE("bench group: refuses a root and a peer that the cluster's ranks do not have") {
  CHECK(problem_of({"broadcast", "--root", "6"}, cluster_of(2))
        == "there is no root 6 in a world of 4: ranks are 0 to 3");
  CHECK(problem_of({"send_recv", "--peer", "6"}, cluster_of(2))
        == "there is no peer 6 in a world of 4: ranks are 0 to 3");
}

TEST_CASE("bench group: sizes are what the devices' memory takes, unless they were asked for") {
  auto cluster = cluster_of(2);
  auto x = fitted({}, cluster);
  REQUIRE(x);
  CHECK(sizes_of(*x).back() == 16u << 20); // of 8, 64, ...: 64 MiB is not among them
  cluster.mutable_devices(3)->mutable_metadata()->mutable_maxmemaddr()->set_value((uint64_t{4} << 40) + (8u << 20));
  auto smaller = fitted({}, cluster);
  REQUIRE(smaller);
  CHECK(smaller->max_bytes == 2u << 20);
  CHECK(memory_for(*smaller) <= 8u << 20);
  CHECK(problem_of({"--max-bytes", "64M"}, cluster)
          .find("these have 8 MiB: --max-bytes 2097152 at most, or a larger device.memory-bytes")
        != std::string::npos);
  CHECK(problem_of({"--min-bytes", "32M", "--max-bytes", "32M"}, cluster)
          .find("these have 8 MiB: a larger device.memory-bytes")
        != std::string::npos);
}
