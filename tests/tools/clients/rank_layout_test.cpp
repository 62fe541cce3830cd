#include "tools/clients/free_devices.hpp"

#include "tests/tools/clients/cluster_info.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

TEST_CASE("rank layout: says on how many nodes and hosts the ranks are") {
  auto cluster = cluster_of(4);
  CHECK(layout_of({1, 2, 3, 4, 5, 6, 7, 8}, cluster).summary() == "8 ranks: 4 nodes of 2 on 1 host");
  CHECK(layout_of({2}, cluster).summary() == "1 rank: 1 node of 1 on 1 host");
  cluster.mutable_nodes(3)->set_hostname("far");
  auto uneven = layout_of({1, 2, 3, 4, 7}, cluster);
  CHECK(uneven.summary() == "5 ranks: 2 nodes of 2 and 1 node of 1 on 2 hosts");
  CHECK(!uneven.all_on("lab"));
  CHECK(layout_of({1, 5}, cluster).all_on("lab"));
}

TEST_CASE("rank layout: says which ranks are on which node") {
  std::vector<std::string> expected{"ranks 0-1 on node-2, host lab, process 102",
                                    "ranks 2, 4 on node-1, host lab, process 101",
                                    "rank 3 on node-3, host lab, process 103", "rank 5 on a node that has left"};
  CHECK(layout_of({3, 4, 1, 5, 2, 9}, cluster_of(3)).nodes() == expected);
}
