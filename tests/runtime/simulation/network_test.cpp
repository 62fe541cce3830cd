#include "runtime/simulation/network.hpp"

#include "runtime/simulation/simulation.hpp"

#include "messages/errc.hpp"
#include "tests/runtime/simulation/microsecond.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// Four ranks on two hosts.
network two_hosts(double inside_bandwidth) {
  return {.link = {5 * us, 50e9}, .hosts = {0, 0, 1, 1}, .inside_host = {us, inside_bandwidth}};
}

/// Seconds of a message are proportional to this.
double per_byte(const network& net, uint32_t source, uint32_t destination) {
  return path_between(net, 4, source, destination).picoseconds_per_byte;
}

} // namespace

TEST_CASE("network: a message between hosts has the lower bandwidth of the link and the hosts") {
  CHECK(per_byte(two_hosts(100e9), 0, 2) == 20);
  CHECK(per_byte(two_hosts(100e9), 0, 1) == 10);
  const auto slow_inside = two_hosts(25e9);
  CHECK(per_byte(slow_inside, 0, 2) == 40);
  CHECK(per_byte(slow_inside, 3, 1) == 40);
  CHECK(per_byte(slow_inside, 0, 1) == 40);
  CHECK(path_between(slow_inside, 4, 0, 2).latency == 5 * us);
  CHECK(path_between(slow_inside, 4, 0, 1).latency == us);
  // On one host there is no inside: all ranks are linked alike.
  auto one = slow_inside;
  one.hosts.clear();
  CHECK(per_byte(one, 0, 2) == 20);
  CHECK(path_between(one, 4, 0, 2).latency == 5 * us);
  std::vector<schedule> ranks(4);
  ranks[0] = {1, 0, {{.what = action::send, .peer = 2, .source = {buffer::input, 0, 100}}}};
  ranks[2] = {1, 0, {{.what = action::recv, .peer = 0, .destination = {buffer::output, 0, 100}}}};
  CHECK(simulate(ranks, slow_inside, 4)->time == 400 * 40 + 5 * us);
}

TEST_CASE("network: hosts may have any ranks, and each has its own card") {
  network net{.hosts = {1, 0, 1, 3}};
  REQUIRE(!check_network(net, 4));
  CHECK(per_byte(net, 0, 2) == 1e12 / 300e9);
  CHECK(per_byte(net, 0, 1) == 20);
  CHECK(path_between(net, 4, 1, 3).ports == std::array<uint32_t, 4>{2, 7, 8, 15});
  CHECK(port_count(net, 4) == 16);
  CHECK(port_name(15, 4) == "the network card of host 3, inwards");
  CHECK(render(check_network(net, 3)) == "the network has hosts for 4 ranks, and there are 3");
  net.hosts[3] = 4;
  CHECK(render(check_network(net, 4))
        == "there is no host 4: hosts are numbered from 0, and 4 ranks have no more than 4");
}

TEST_CASE("network: only an odd link is slower, in both directions") {
  auto net = two_hosts(25e9);
  net.odd_links = {{2, 0, 3}, {0, 1, 2}, {3, 1, 1, true}};
  CHECK(per_byte(net, 0, 2) == 120);
  CHECK(per_byte(net, 2, 0) == 120);
  CHECK(per_byte(net, 0, 1) == 80);
  CHECK(per_byte(net, 0, 3) == 40);
  CHECK(path_between(net, 4, 1, 3).broken);
  CHECK(path_between(net, 4, 3, 1).broken);
  CHECK_FALSE(path_between(net, 4, 0, 2).broken);
  net.odd_links.push_back({0, 2, 2}); // slow twice over
  CHECK(per_byte(net, 0, 2) == 240);
  net.odd_links.push_back({3, 1, 2}); // what is broken stays so
  CHECK(path_between(net, 4, 1, 3).broken);
}

TEST_CASE("network: a message occupies its ranks' ports and, between hosts, their cards") {
  const auto net = two_hosts(100e9);
  auto names = [&](uint32_t source, uint32_t destination) {
    auto path = path_between(net, 4, source, destination);
    std::vector<std::string> result;
    for (uint32_t i = 0; i < path.length; ++i) {
      CHECK(path.ports[i] < port_count(net, 4));
      result.push_back(port_name(path.ports[i], 4));
    }
    return result;
  };
  CHECK(names(3, 2) == std::vector<std::string>{"the way out of rank 3", "the way into rank 2"});
  CHECK(names(3, 0)
        == std::vector<std::string>{"the way out of rank 3", "the way into rank 0",
                                    "the network card of host 1, outwards", "the network card of host 0, inwards"});
  CHECK(port_count(net, 4) == 12);
  CHECK(port_count({}, 4) == 8);
}
