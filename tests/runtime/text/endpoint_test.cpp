#include "runtime/text/endpoint.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("endpoint: is a host and a port") {
  CHECK(*parse_endpoint("localhost:7077") == endpoint{"localhost", 7077});
  CHECK(*parse_endpoint("10.0.0.1:65535") == endpoint{"10.0.0.1", 65535});
  CHECK(*parse_endpoint("[::1]:80") == endpoint{"::1", 80});
}

TEST_CASE("endpoint: anything else is refused with what would be right") {
  for (auto text : {"", "localhost", "localhost:", ":80", "localhost:0", "localhost:65536", "localhost:-1",
                    "localhost:80x", "localhost: 80", "::1:80", "[]:80"}) {
    CAPTURE(text);
    CHECK(!parse_endpoint(text));
  }
  CHECK(render(parse_endpoint("localhost").error())
        == "\"localhost\" is no endpoint: that is \"host:port\" with a port from 1 to 65535");
}

TEST_CASE("endpoint: a cluster's device has an id, too") {
  CHECK(*parse_cluster_device("3,10.0.0.7,7080") == cluster_device{device_id{3}, {"10.0.0.7", 7080}});
  CHECK(*parse_cluster_device("18446744073709551615,::1,1") == cluster_device{device_id{UINT64_MAX}, {"::1", 1}});
  for (auto text : {"", "3", "3,host", "0,host,80", "3,,80", "3,host,0", "3,host,65536", "x,host,80", "3,ho,st,80",
                    "3,host,80,", " 3,host,80"}) {
    CAPTURE(text);
    CHECK(!parse_cluster_device(text));
  }
}
