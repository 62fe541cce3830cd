#include "tools/options/commands.hpp"

#include "actors/configuration/settings.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/logging/log.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/cluster/info_text.hpp"
#include "tools/console/page_format.hpp"
#include "tools/options/configured_call.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <optional>
#include <set>
#include <thread>

namespace ringmaster {

namespace {

class info_call final : public configured_call {
  void declare_options(option_table& table) override {
    table.about("Lists the members of a cluster: nodes and their devices, communicators with epoch and ranks, and "
                "recent losses.");
    join_option(table);
    table.text("--nodes", nodes_).says("A,B", "waits until these nodes have joined with all their devices");
    table.number("--devices", devices_min_, 0).says("N", "waits for this number of devices").otherwise("");
    table.text("--gone", gone_)
      .says("A", "waits until the loss of node A is known, and prints in a line what was lost with it; with --json "
                 "also the numbers of its communicators");
    key_option(table, "--timeout", "node.join-timeout").says("T", "how long to wait, such as 30s");
    table.flag("--json", json_)
      .says("prints a JSON object with the fields of ClusterInfo in messages/cluster.proto; if nodes or devices are "
            "missing at the timeout, only \"missing\" (names) and \"missing_devices\"");
    table.flag("--wide", wide_).says("does not wrap lines that are wider than the terminal, or than 100 columns");
    table.closing(
      "The exit status is 0 if nothing is missing. For each missing node there is a line \"missing: NAME\".");
  }

  caf::error check() override {
    for (auto name : comma_list(nodes_))
      if (!name.empty())
        wanted_.emplace(name);
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    auto& opts = cfg_.values();
    start_log(opts);
    caf::actor_system system{cfg_};
    TRY(host, coordinator_for("ringmaster info", system, opts, to.err));
    client user{system, *host};
    auto give_up = awake_clock::actor_now() + opts.node.join_timeout;
    const auto where = coordinator_elsewhere(opts);
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds{20})) {
      const bool waiting = awake_clock::actor_now() < give_up;
      TRY(cluster, user.info());
      if (!gone_.empty()) {
        if (auto loss = loss_of(*cluster, gone_); loss || !waiting)
          return report_loss(loss, to);
      } else if (!waiting || is_complete(*cluster)) {
        report(*cluster, where, to);
        return is_complete(*cluster) ? exit_ok : exit_failed;
      }
    }
  }

  bool is_complete(const proto::ClusterInfo& cluster) const {
    return missing_nodes(cluster, wanted_).empty() && static_cast<uint64_t>(cluster.devices_size()) >= devices_min_;
  }

  void report(const proto::ClusterInfo& cluster, const std::string& coordinator, const console& to) const {
    const auto missing = missing_nodes(cluster, wanted_);
    const auto devices = static_cast<uint64_t>(cluster.devices_size());
    const auto missing_devices = devices < devices_min_ ? devices_min_ - devices : 0;
    auto* lines = json_ ? to.err : to.out;
    for (auto& name : missing)
      fmt::print(lines, "missing: {}\n", name);
    if (missing_devices > 0)
      fmt::print(lines, "missing: {} of {}\n", missing_devices, counted(devices_min_, "device"));
    if (json_ && is_complete(cluster))
      fmt::print(to.out, "{}\n", json_of(cluster));
    else if (json_)
      fmt::print(to.out, "{}\n", missing_json(missing, missing_devices));
    else if (wanted_.empty())
      fmt::print(to.out, "{}", page_format::of_console(wide_).lines(info_text(cluster, coordinator, utc_offset_now())));
  }

  static std::string missing_json(const std::set<std::string>& nodes, uint64_t devices) {
    return json_text({{"missing", nodes}, {"missing_devices", devices}});
  }

  caf::expected<int> report_loss(const std::optional<node_loss>& loss, const console& to) const {
    if (!loss)
      return make_error(errc::timed_out,
                        fmt::format("node {} is not known to be gone, or not what it took with it", gone_));
    if (!json_) {
      fmt::print(to.out, "{}\n", loss->text);
      return exit_ok;
    }
    json_value json{{"node", gone_}, {"lost", loss->text}, {"communicators", json_value::array()}};
    for (auto id : loss->communicators)
      json["communicators"].push_back(id.value);
    fmt::print(to.out, "{}\n", json_text(json));
    return exit_ok;
  }

  std::string nodes_, gone_;
  uint64_t devices_min_ = 0;
  bool json_ = false, wide_ = false;
  std::set<std::string> wanted_;
};

} // namespace

tool_command info_command() {
  return tool_command::of<info_call>("info", "lists the members of a cluster");
}

} // namespace ringmaster
