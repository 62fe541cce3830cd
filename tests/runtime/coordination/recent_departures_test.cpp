#include "runtime/coordination/drain_desk.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace ringmaster;

TEST_CASE("recent departures: the latest are kept, oldest first, and name their nodes") {
  recent_departures gone;
  for (uint64_t i = 1; i <= recent_departures::kept_max + 1; ++i) {
    proto::ClusterInfo::Gone node;
    node.set_what(proto::ClusterInfo::Gone::NODE);
    node.set_id(i);
    node.set_name("node-" + std::to_string(i));
    gone.add(std::move(node), 100 + i);
  }
  CHECK(gone.size() == recent_departures::kept_max);
  CHECK(gone.name_of(node_id{1}).empty());
  CHECK(gone.name_of(node_id{2}) == "node-2");
  proto::ClusterInfo info;
  gone.write_to(info);
  REQUIRE(info.gone_size() == static_cast<int>(recent_departures::kept_max));
  CHECK(info.gone(0).id() == 2);
  CHECK(info.gone(0).time_ns() == 102);
}
