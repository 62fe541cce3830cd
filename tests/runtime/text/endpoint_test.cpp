#include "runtime/text/endpoint.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <utility>

using namespace ringmaster;

TEST_CASE("endpoint: consists of a host and a port") {
  CHECK(*parse_endpoint("localhost:7077") == endpoint{"localhost", 7077});
  CHECK(*parse_endpoint("10.0.0.1:65535") == endpoint{"10.0.0.1", 65535});
  CHECK(*parse_endpoint("[::1]:80") == endpoint{"::1", 80});
}

TEST_CASE("endpoint: anything else is refused with an example") {
  for (auto text : {"", "localhost", "localhost:", ":80", "localhost:0", "localhost:65536", "localhost:-1",
                    "localhost:80x", "localhost: 80", "::1:80", "[]:80"}) {
    CAPTURE(text);
    CHECK(!parse_endpoint(text));
  }
  CHECK(render(parse_endpoint("localhost").error())
        == "\"localhost\" is no endpoint: that is \"host:port\" with a port from 1 to 65535");
}

TEST_CASE("endpoint: several have commas between them") {
  CHECK(*parse_endpoints("a:1") == std::vector{endpoint{"a", 1}});
  CHECK(*parse_endpoints("a:1,[::1]:2") == std::vector{endpoint{"a", 1}, endpoint{"::1", 2}});
  for (auto text : {"", "a:1,", ",a:1", "a:1,b", "a:1 b:2"}) {
    CAPTURE(text);
    CHECK(!parse_endpoints(text));
  }
}

TEST_CASE("endpoint: the printed form can be read again") {
  for (auto& x :
       {endpoint{"localhost", 7077}, endpoint{"10.0.0.1", 1}, endpoint{"::1", 7177}, endpoint{"fe80::1%eth0", 65535}})
    CHECK(*parse_endpoint(text_of(x)) == x);
  CHECK(text_of(endpoint{"::1", 7177}) == "[::1]:7177");
}

TEST_CASE("endpoint: an IPv6 address without brackets is refused with the text to write") {
  for (auto [wrong, right] : {std::pair{"::1:7177", "[::1]:7177"},
                              {"fd00::7:7077", "[fd00::7]:7077"},
                              {"fe80::1%eth0:7077", "[fe80::1%eth0]:7077"},
                              {"::ffff:10.0.0.7:80", "[::ffff:10.0.0.7]:80"},
                              {"::1", "[::1]:PORT"},
                              {"[::1]", "[::1]:PORT"},
                              {"2001:db8::7077", "[2001:db8::7077]:PORT"}})
    CHECK(render(parse_endpoint(wrong).error())
          == fmt::format("\"{}\" is no endpoint: an IPv6 address is written in brackets: \"{}\"", wrong, right));
  for (auto other : {"a:b:80", "[::1]:0", "[::1]80", "[[::1]]:80"})
    CHECK(render(parse_endpoint(other).error()).find("that is \"host:port\"") != std::string::npos);
}

TEST_CASE("endpoint: a host without a port may have brackets") {
  CHECK(without_brackets("[::1]") == "::1");
  CHECK(without_brackets("::1") == "::1");
  CHECK(without_brackets("10.0.0.7") == "10.0.0.7");
  CHECK(without_brackets("[]") == "[]");
  CHECK(parse_cluster_device("3,[::1],7080")->node == endpoint{"::1", 7080});
}

TEST_CASE("endpoint: a cluster's device also has an id") {
  CHECK(*parse_cluster_device("3,10.0.0.7,7080") == cluster_device{device_id{3}, {"10.0.0.7", 7080}});
  CHECK(*parse_cluster_device("18446744073709551615,::1,1") == cluster_device{device_id{UINT64_MAX}, {"::1", 1}});
  for (auto text : {"", "3", "3,host", "0,host,80", "3,,80", "3,host,0", "3,host,65536", "x,host,80", "3,ho,st,80",
                    "3,host,80,", " 3,host,80"}) {
    CAPTURE(text);
    CHECK(!parse_cluster_device(text));
  }
}
