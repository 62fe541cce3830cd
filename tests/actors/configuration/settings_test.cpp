// Which option goes where: every one has a value of its own.
#include "actors/configuration/settings.hpp"

#include "runtime/configuration/routes.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace ringmaster;
using namespace std::chrono_literals;

TEST_CASE("settings: a device and its streams have what the options say") {
  options opts;
  opts.device.memory_bytes = 11 << 20;
  opts.device.streams = 5;
  opts.device.count = 7;
  opts.transfers.timeout = 13s;
  opts.transfers.slice_bytes = 17 << 10;
  opts.communicator.operation_timeout = 19s;
  opts.route.chunk_bytes = 23 << 10;
  opts.route.credits = 29;
  opts.link.eager_bytes = 31 << 10;
  auto x = device_settings(opts, "/there");
  CHECK(x.memory_dir == "/there");
  CHECK(x.memory_bytes == 11 << 20);
  CHECK(x.streams == 5);
  CHECK(x.streams_options.transfer_limit == 13s);
  CHECK(x.streams_options.slice_bytes == 17 << 10);
  CHECK(x.streams_options.wait_limit == 19s);
  CHECK(x.streams_options.chunk_bytes == 23 << 10);
  CHECK(x.streams_options.credits == 29);
  CHECK(x.streams_options.route == "auto");
  CHECK(x.streams_options.neighbours);
  CHECK(x.streams_options.eager_bytes == 31 << 10);
  CHECK_FALSE(x.streams_options.link); // made by one that starts the node
  opts.route.use = "link";
  CHECK_FALSE(device_settings(opts, "/there").streams_options.neighbours);
  CHECK(coordinator_settings(opts).communicators.must_link);
  CHECK_FALSE(coordinator_settings(opts).communicators.share_memory);
  opts.route.use = "messages";
  CHECK(device_settings(opts, "/there").streams_options.route == "messages");
  CHECK_FALSE(device_settings(opts, "/there").streams_options.neighbours);
  CHECK(coordinator_settings(opts).route == "messages");
  opts.route.use = "auto";
  for (std::string forced :
       {"memory", "link", "messages", "auto"}) { // the cluster's, of which a node hears when it joins
    auto streams = device_settings(opts, "/there").streams_options;
    streams.force(forced);
    CHECK(streams.route == forced);
    CHECK(static_cast<bool>(streams.neighbours) == (forced == "memory" || forced == "auto"));
  }
  CHECK(memory_files_bytes(opts) == 7 * (2 * (11ull << 20) + 4096)); // as large again for scratch, and marks
}

TEST_CASE("settings: each route of the table can be chosen by its name, and only its own conditions decide") {
  options opts;
  auto entries = option_entries(opts);
  auto use = std::ranges::find_if(entries, [](auto& x) { return x.section == "route" && x.key == "use"; });
  REQUIRE(use != entries.end());
  CHECK(use->words.size() == route_table.size() + 1);
  for (auto& route : route_table) {
    CAPTURE(route.name);
    CHECK(std::ranges::count(use->words, route.name) == 1);
    opts.route.use = route.name;
    auto host = coordinator_settings(opts);
    CHECK((device_settings(opts, "/there").streams_options.neighbours != nullptr) == route.maps_memory);
    CHECK(host.communicators.must_share == route.maps_memory);
    CHECK(host.communicators.share_memory == route.maps_memory);
    CHECK(host.communicators.must_link == route.has_links);
  }
  opts.route.use = "auto";
  CHECK(coordinator_settings(opts).communicators.share_memory);
  CHECK_FALSE(coordinator_settings(opts).communicators.must_share);
  CHECK_FALSE(coordinator_settings(opts).communicators.must_link);
}

TEST_CASE("settings: bulk connections are as the options say") {
  options opts;
  opts.link.addresses = {"10.0.0.7"};
  opts.link.port = 11;
  opts.link.connections = 13;
  opts.link.checksums = true;
  opts.link.silence = 17s;
  opts.link.connect_timeout = 19s;
  auto x = link_settings(opts);
  CHECK(x.addresses == opts.link.addresses);
  CHECK(x.port == 11);
  CHECK(x.connections == 13);
  CHECK(x.checksums);
  CHECK(x.silence == 17s);
  CHECK(x.connect_limit == 19s);
}

TEST_CASE("settings: a node has its name or one of its host, its limits, and its devices theirs") {
  options opts;
  opts.node.name = "one";
  opts.node.join_timeout = 31s;
  opts.device.count = 7;
  opts.device.memory_bytes = 11 << 20;
  opts.supervisor.restarts_max = 37;
  opts.supervisor.period = 41s;
  auto x = node_settings(opts, "/there");
  CHECK(x.name == "one");
  CHECK(x.join_limit == 31s);
  CHECK(x.devices == 7);
  CHECK(x.restarts_max == 37);
  CHECK(x.period == 41s);
  CHECK(x.device.memory_bytes == 11 << 20);
  CHECK(x.pid != 0);
  opts.node.name.clear();
  CHECK(node_settings(opts, "/there").name.ends_with("-" + std::to_string(x.pid)));
}

TEST_CASE("settings: costs are in seconds and bytes a second, each in its place") {
  options opts;
  auto& c = opts.costs;
  c.operation = 1us;
  c.latency = 2us;
  c.bandwidth = 3;
  c.message = 16us;
  c.host_latency = 17us;
  c.host_bandwidth = 18;
  c.local_operation = 4us;
  c.local_rank = 5us;
  c.local_step = 6us;
  c.local_message = 7us;
  c.local_bandwidth = 8;
  c.local_reduction_rate = 9;
  c.local_memory_bandwidth = 10;
  c.local_cache_bytes = 11;
  c.shared_memory_operation = 12us;
  c.joint_rank = 13us;
  c.joint_bandwidth = 14;
  c.training_call = 19us;
  c.training_receive = 20us;
  auto between = network_costs(opts);
  CHECK(between.operation_s == 1e-6);
  CHECK(between.latency_s == 2e-6);
  CHECK(between.bandwidth == 3);
  CHECK(between.message_overhead_s == 16e-6);
  CHECK(between.host_latency_s == 17e-6);
  CHECK(between.host_bandwidth == 18);
  auto within = process_costs(opts, 15);
  CHECK(within.operation_s == 4e-6);
  CHECK(within.rank_s == 5e-6);
  CHECK(within.step_s == 6e-6);
  CHECK(within.message_s == 7e-6);
  CHECK(within.bandwidth == 8);
  CHECK(within.reduction_rate == 9);
  CHECK(within.memory_bandwidth == 10);
  CHECK(within.cache_bytes == 11);
  CHECK(within.training.collective_s == 19e-6);
  CHECK(within.training.receive_s == 20e-6);
  CHECK(within.joint.operation_s == 12e-6);
  CHECK(within.joint.rank_s == 13e-6);
  CHECK(within.joint.bandwidth == 14);
  CHECK(within.cores == 15);
  CHECK(parse_policy("shrink") == proto::SHRINK);
  CHECK(parse_policy("replace") == proto::REPLACE);
  CHECK(parse_policy("abort") == proto::ABORT);
}
