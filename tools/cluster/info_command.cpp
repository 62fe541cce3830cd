#include "tools/cluster/info_command.hpp"

#include "actors/configuration/log.hpp"
#include "client/client.hpp"
#include "messages/errc.hpp"
#include "tools/cluster/cluster_connection.hpp"
#include "tools/options/configured_call.hpp"

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

void print_info(const proto::ClusterInfo& cluster, std::FILE* out) {
  if (cluster.nodes().empty())
    fmt::print(out, "no node has joined\n");
  for (auto& x : cluster.nodes())
    fmt::print(out, "node {} '{}' (pid {})\n", x.node_id(), x.name(), x.pid());
  for (auto& x : cluster.devices())
    fmt::print(out, "device 0x{:x} on node {}, {}\n", x.metadata().deviceid().value(), x.node_id(),
               x.comm_ids().empty() ? "free" : fmt::format("in communicator {}", fmt::join(x.comm_ids(), ", ")));
}

class info_call final : public configured_call {
  void declare_options(option_table& table) override {
    table.about("Who is in a cluster, and what it is doing.");
    key_option(table, "--join", "node.join")
      .says("HOST:PORT", "the cluster's coordinator")
      .otherwise("the one that RINGMASTER_COORDINATOR names");
    table.text("--nodes", nodes_).says("A,B", "wait until these nodes are there with all their devices");
    table.number("--devices", devices_min_, 0).says("N", "wait until this many devices are there").otherwise("");
    key_option(table, "--timeout", "node.join-timeout").says("T", "at most so long, as in 30s");
    table.flag("--json", json_).says("one JSON object, with the fields of ClusterInfo in messages/cluster.proto");
    table.closing("The exit status is 0 if those waited for are there; each that is not gets a line \"missing: NAME\".");
  }

  caf::error check() override {
    std::istringstream names{nodes_};
    for (std::string name; std::getline(names, name, ',');)
      wanted_.insert(name);
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    auto& opts = cfg_.values();
    start_log(opts);
    caf::actor_system system{cfg_};
    auto host = coordinator_for("ringmaster info", system, opts);
    if (!host && code_of(host.error()) == errc::invalid_argument)
      return std::move(host.error());
    if (!host)
      end_at_once("ringmaster info", host.error(), to.err);
    client user{system, *host};
    auto give_up = std::chrono::steady_clock::now() + opts.node.join_timeout;
    for (;;) {
      auto cluster = user.devices();
      if (!cluster)
        return std::move(cluster.error());
      auto missing = missing_nodes(*cluster, wanted_);
      const bool complete = missing.empty() && static_cast<uint64_t>(cluster->devices_size()) >= devices_min_;
      if (complete || std::chrono::steady_clock::now() >= give_up) {
        print(*cluster, missing, to);
        return complete ? exit_ok : exit_failed;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
  }

  void print(const proto::ClusterInfo& cluster, const std::set<std::string>& missing, const console& to) const {
    auto* told = json_ ? to.err : to.out;
    for (auto& name : missing)
      fmt::print(told, "missing: {}\n", name);
    if (auto here = static_cast<uint64_t>(cluster.devices_size()); here < devices_min_)
      fmt::print(told, "missing: {} of {} devices\n", devices_min_ - here, devices_min_);
    if (json_)
      fmt::print(to.out, "{}\n", json_of(cluster));
    else if (wanted_.empty())
      print_info(cluster, to.out);
  }

  std::string nodes_;
  uint64_t devices_min_ = 0;
  bool json_ = false;
  std::set<std::string> wanted_;
};

} // namespace

tool_command info_command() {
  return tool_command::of<info_call>("info", "who is in a cluster, and what it is doing");
}

} // namespace ringmaster
