#include "tools/cluster/info_command.hpp"

#include "actors/configuration/log.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "messages/errc.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/cluster/cluster_connection.hpp"
#include "tools/cluster/info_text.hpp"
#include "tools/options/program.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <set>
#include <sstream>
#include <thread>

namespace ringmaster {

namespace {

constexpr auto info_help = R"(usage: ringmaster info [options]

Says who is in a cluster: nodes, their devices and what these do, communicators with epoch and ranks, and what is gone.

  --join HOST:PORT  the cluster's coordinator; without it the one that RINGMASTER_COORDINATOR names
  --nodes A,B       wait until these nodes are there with all their devices
  --devices N       wait until this many devices are there
  --gone A          wait until node A is known to be gone, and say in one line what it took with it
  --timeout T       at most so long, as in 30s (5s)
  --json            one JSON object, with the fields of ClusterInfo in messages/cluster.proto

The exit status is 0 if those waited for are there; each that is not gets a line "missing: NAME".
)";

std::chrono::seconds utc_offset() {
  auto now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return std::chrono::seconds{local.tm_gmtoff};
}

struct info_orders {
  std::set<std::string> nodes;
  uint64_t devices_min = 0;
  std::string gone;
  bool json = false;
};

caf::expected<info_orders> orders_of(std::map<std::string, std::string>& own) {
  info_orders result;
  std::istringstream names{own["--nodes"]};
  for (std::string name; std::getline(names, name, ',');)
    result.nodes.insert(name);
  result.gone = own["--gone"];
  if (own.count("--devices") == 0)
    return result;
  auto devices = parse_whole(own["--devices"], 0);
  if (!devices)
    return make_error(errc::invalid_argument, "--devices: " + render(devices.error()));
  result.devices_min = *devices;
  return result;
}

/// What was waited for is there, or time is up. Returns the exit status.
int tell(const info_orders& x, const proto::ClusterInfo& cluster, const std::string& coordinator) {
  auto missing = missing_nodes(cluster, x.nodes);
  auto* to = x.json ? stderr : stdout;
  for (auto& name : missing)
    fmt::print(to, "missing: {}\n", name);
  auto here = static_cast<uint64_t>(cluster.devices_size());
  if (here < x.devices_min)
    fmt::print(to, "missing: {} of {}\n", x.devices_min - here, counted(x.devices_min, "device"));
  if (x.json)
    fmt::print("{}\n", json_of(cluster));
  else if (x.nodes.empty())
    fmt::print("{}", info_text(cluster, coordinator, utc_offset()));
  return missing.empty() && here >= x.devices_min ? 0 : 1;
}

int tell_loss(const info_orders& x, const std::optional<std::string>& loss) {
  if (!loss)
    return report(make_error(errc::timed_out, fmt::format("node {} is not known to be gone, or not what it took with it",
                                                          x.gone)));
  fmt::print("{}\n", *loss);
  return 0;
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
                      {"--devices", ""},
                      {"--gone", ""}};
  auto others = args;
  const bool json = std::erase(others, "--json") > 0;
  if (auto problem = read_configuration(cfg, std::move(others), known, own))
    return report(problem, 2);
  auto orders = orders_of(own);
  if (!orders)
    return report(orders.error(), 2);
  orders->json = json;
  auto& opts = cfg.values();
  start_log(opts);
  caf::actor_system system{cfg};
  auto host = coordinator_for("ringmaster info", system, opts);
  if (!host) {
    report(host.error());
    std::_Exit(1); // a connection attempt that the system still waits for must not hold us
  }
  client user{system, *host};
  auto give_up = std::chrono::steady_clock::now() + opts.node.join_timeout;
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds{20})) {
    const bool waiting = std::chrono::steady_clock::now() < give_up;
    auto cluster = user.info();
    if (!cluster)
      return report(cluster.error());
    if (!orders->gone.empty()) {
      if (auto loss = loss_text(*cluster, orders->gone); loss || !waiting)
        return tell_loss(*orders, loss);
    } else if (!waiting
               || (missing_nodes(*cluster, orders->nodes).empty()
                   && static_cast<uint64_t>(cluster->devices_size()) >= orders->devices_min)) {
      return tell(*orders, *cluster, coordinator_elsewhere(opts));
    }
  }
}

} // namespace ringmaster
