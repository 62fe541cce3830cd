#include "tools/cluster/info_command.hpp"

#include "actors/configuration/log.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "messages/errc.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/cluster/info_text.hpp"
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
    table.about(
      "Who is in a cluster: nodes, their devices and what these do, communicators with epoch and ranks, and what "
      "is gone.");
    join_option(table);
    table.text("--nodes", nodes_).says("A,B", "wait until these nodes are there with all their devices");
    table.number("--devices", devices_min_, 0).says("N", "wait until this many devices are there").otherwise("");
    table.text("--gone", gone_)
      .says("A",
            "wait until node A is known to be gone, and say in one line what it took with it; with --json also the "
            "numbers of its communicators");
    key_option(table, "--timeout", "node.join-timeout").says("T", "at most so long, as in 30s");
    table.flag("--json", json_)
      .says(
        "one JSON object: the fields of ClusterInfo in messages/cluster.proto; if --nodes or --devices waited in vain, "
        "\"missing\" (names) and \"missing_devices\" alone");
    table.closing(
      "The exit status is 0 if those waited for are there; each that is not gets a line \"missing: NAME\".");
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
    auto host = coordinator_for("ringmaster info", system, opts, to.err);
    if (!host)
      return std::move(host.error());
    client user{system, *host};
    auto give_up = awake_clock::actor_now() + opts.node.join_timeout;
    const auto where = coordinator_elsewhere(opts);
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds{20})) {
      const bool waiting = awake_clock::actor_now() < give_up;
      auto cluster = user.info();
      if (!cluster)
        return std::move(cluster.error());
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
      fmt::print(to.out, "{}", info_text(cluster, coordinator, utc_offset_now()));
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
  bool json_ = false;
  std::set<std::string> wanted_;
};

} // namespace

tool_command info_command() {
  return tool_command::of<info_call>("info", "who is in a cluster, and what it is doing");
}

} // namespace ringmaster
