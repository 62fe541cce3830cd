#include "tools/cluster/destroy_command.hpp"

#include "actors/configuration/log.hpp"
#include "client/client.hpp"
#include "messages/errc.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "tools/cluster/cluster_connection.hpp"
#include "tools/options/program.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <set>

namespace ringmaster {

namespace {

constexpr auto destroy_help = R"(usage: ringmaster destroy N... | all [options]

Ends communicators, whoever made them: what is in flight on them fails, and their devices are free. `ringmaster info`
says which there are.

  --join HOST:PORT  the cluster's coordinator; without it the one that RINGMASTER_COORDINATOR names
  --timeout T       how long to look for it, as in 30s (5s)

The exit status is 0 if all of them have ended.
)";

struct destroy_orders {
  std::set<uint64_t> communicators;
  bool all = false;
};

/// Takes the numbers out of `args`. Errors: invalid_argument.
caf::expected<destroy_orders> take_orders(std::vector<std::string>& args) {
  destroy_orders result;
  std::vector<std::string> rest;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].starts_with("-")) {
      rest.push_back(args[i]);
      if (args[i].find('=') == std::string::npos && i + 1 < args.size())
        rest.push_back(args[++i]); // its value
    } else if (args[i] == "all") {
      result.all = true;
    } else if (auto number = parse_whole(args[i], 1)) {
      result.communicators.insert(*number);
    } else {
      return make_error(errc::invalid_argument, "which communicator? " + render(number.error()));
    }
  }
  if (result.all != result.communicators.empty())
    return make_error(errc::invalid_argument, "destroy wants the numbers of communicators, or \"all\"; `ringmaster info` "
                                              "says which there are");
  args = std::move(rest);
  return result;
}

/// The communicators that have devices.
std::set<uint64_t> communicators_of(const proto::ClusterInfo& cluster) {
  std::set<uint64_t> result;
  for (auto& x : cluster.devices())
    result.insert(x.comm_ids().begin(), x.comm_ids().end());
  return result;
}

} // namespace

int destroy_command(const std::vector<std::string>& args) {
  if (wants_help(args, destroy_help))
    return 0;
  auto others = args;
  auto orders = take_orders(others);
  if (!orders)
    return report(orders.error(), 2);
  configuration cfg;
  std::map<std::string, std::string> own;
  short_options known{{"--join", "node.join"}, {"--timeout", "node.join-timeout"}, {"--conf", "config-file"}};
  if (auto problem = read_configuration(cfg, std::move(others), known, own))
    return report(problem, 2);
  start_log(cfg.values());
  caf::actor_system system{cfg};
  auto host = coordinator_for("ringmaster destroy N", system, cfg.values());
  if (!host) {
    report(host.error());
    std::_Exit(1); // a connection attempt that the system still waits for must not hold us
  }
  client user{system, *host};
  if (orders->all) {
    auto cluster = user.devices();
    if (!cluster)
      return report(cluster.error());
    orders->communicators = communicators_of(*cluster);
    if (orders->communicators.empty())
      fmt::print("there is no communicator\n");
  }
  int status = 0;
  for (auto number : orders->communicators) {
    if (auto problem = user.destroy(number))
      status = report(problem);
    else
      fmt::print("communicator {} is destroyed, its devices are free\n", number);
  }
  return status;
}

} // namespace ringmaster
