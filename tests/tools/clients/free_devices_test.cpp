#include "tools/clients/free_devices.hpp"

#include "messages/errc.hpp"
#include "tests/tools/clients/cluster_info.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

TEST_CASE("free devices: what the cluster does not have is refused, with how many came and who has the others") {
  auto cluster = cluster_of(2);
  CHECK(!check_free("bench", 4, cluster));
  CHECK(render(check_free("bench", 5, cluster)) == "bench wants 5 devices, and the cluster has 4 devices");
  for (int i = 0; i < 3; ++i)
    cluster.mutable_devices(i)->add_comm_ids(i == 0 ? 9 : 7);
  CHECK(render(check_free("demo", 2, cluster))
        == "demo wants 2 devices, and the cluster has 4 devices, of which 1 is free: the others belong to "
           "communicators 7, 9, which `ringmaster destroy 7 9` ends");
  REQUIRE(free_devices(cluster).size() == 1);
  CHECK(free_devices(cluster).front()->metadata().deviceid().value() == 4);
  CHECK(least_memory_bytes(free_devices(cluster)) == 64u << 20);
}
