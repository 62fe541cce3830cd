#include "tools/cluster/info_command.hpp"

#include "actors/configuration/log.hpp"
#include "client/client.hpp"
#include "messages/errc.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "tools/cluster/cluster_connection.hpp"
#include "tools/options/program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <thread>

namespace ringmaster {

namespace {

constexpr auto info_help = R"(usage: ringmaster info [options]

  --join HOST:PORT  the cluster's coordinator; without it the one that RINGMASTER_COORDINATOR names
  --nodes A,B       wait until these nodes are there with all their devices
  --devices N       wait until this many devices are there
  --timeout T       at most so long, as in 30s (5s)
  --json            one JSON object, with the fields of ClusterInfo in messages/cluster.proto

The exit status is 0 if those waited for are there; each that is not gets a line "missing: NAME".
)";

/// The nodes of `wanted` that are not there with all their devices.
std::set<std::string> missing_nodes(const proto::ClusterInfo& cluster, std::set<std::string> wanted) {
  for (auto& x : cluster.nodes()) {
    auto here = std::ranges::count_if(cluster.devices(), [&](auto& y) { return y.node_id() == x.node_id(); });
    if (here >= x.devices_announced())
      wanted.erase(x.name());
  }
  return wanted;
}

std::string json_of(const proto::ClusterInfo& cluster) {
  google::protobuf::util::JsonPrintOptions how;
  how.preserve_proto_field_names = true;
  how.always_print_primitive_fields = true;
  std::string result;
  auto status = google::protobuf::util::MessageToJsonString(cluster, &result, how);
  return status.ok() ? result : "{}";
}

void print_info(const proto::ClusterInfo& cluster) {
  if (cluster.nodes().empty())
    fmt::print("no node has joined\n");
  for (auto& x : cluster.nodes())
    fmt::print("node {} '{}' (pid {})\n", x.node_id(), x.name(), x.pid());
  for (auto& x : cluster.devices())
    fmt::print("device 0x{:x} on node {}, {}\n", x.metadata().deviceid().value(), x.node_id(),
               x.comm_ids().empty() ? "free" : fmt::format("in communicator {}", fmt::join(x.comm_ids(), ", ")));
}

} // namespace

int info_command(const std::vector<std::string>& args) {
  if (wants_help(args, info_help))
    return 0;
  configuration cfg;
  std::map<std::string, std::string> own;
  short_options known{{"--join", "node.join"},
                      {"--timeout", "node.join-timeout"},
                      {"--conf", "config-file"},
                      {"--nodes", ""},
                      {"--devices", ""}};
  auto others = args;
  const bool json = std::erase(others, "--json") > 0;
  if (auto problem = read_configuration(cfg, std::move(others), known, own))
    return report(problem, 2);
  auto& opts = cfg.values();
  std::set<std::string> wanted;
  std::istringstream names{own["--nodes"]};
  for (std::string name; std::getline(names, name, ',');)
    wanted.insert(name);
  auto devices_min = own.count("--devices") == 0 ? caf::expected<uint64_t>{0u} : parse_whole(own["--devices"], 0);
  if (!devices_min)
    return report(make_error(errc::invalid_argument, "--devices: " + render(devices_min.error())), 2);
  start_log(opts);
  caf::actor_system system{cfg};
  auto host = coordinator_for("ringmaster info", system, opts);
  if (!host) {
    report(host.error());
    std::_Exit(1); // a connection attempt that the system still waits for must not hold us
  }
  client user{system, *host};
  auto give_up = std::chrono::steady_clock::now() + opts.node.join_timeout;
  for (;;) {
    auto cluster = user.devices();
    if (!cluster)
      return report(cluster.error());
    auto missing = missing_nodes(*cluster, wanted);
    auto here = static_cast<uint64_t>(cluster->devices_size());
    const bool complete = missing.empty() && here >= *devices_min;
    if (!complete && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
      continue;
    }
    for (auto& name : missing)
      fmt::print(json ? stderr : stdout, "missing: {}\n", name);
    if (here < *devices_min)
      fmt::print(json ? stderr : stdout, "missing: {} of {} devices\n", *devices_min - here, *devices_min);
    if (json)
      fmt::print("{}\n", json_of(*cluster));
    else if (wanted.empty())
      print_info(*cluster);
    return complete ? 0 : 1;
  }
}

} // namespace ringmaster
