#include "tools/cluster/info_command.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "tools/clients/cluster_connection.hpp"

#include "actors/configuration/log.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "messages/errc.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/cluster/info_text.hpp"
#include "tools/options/configured_call.hpp"

#include <fmt/format.h>

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
      .says("A", "wait until node A is known to be gone, and say in one line what it took with it");
    key_option(table, "--timeout", "node.join-timeout").says("T", "at most so long, as in 30s");
    table.flag("--json", json_).says("one JSON object, with the fields of ClusterInfo in messages/cluster.proto");
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
        if (auto loss = loss_text(*cluster, gone_); loss || !waiting)
          return tell_loss(loss, to);
      } else if (!waiting || is_complete(*cluster)) {
        tell(*cluster, where, to);
        return is_complete(*cluster) ? exit_ok : exit_failed;
      }
    }
  }

  bool is_complete(const proto::ClusterInfo& cluster) const {
    return missing_nodes(cluster, wanted_).empty() && static_cast<uint64_t>(cluster.devices_size()) >= devices_min_;
  }

  void tell(const proto::ClusterInfo& cluster, const std::string& coordinator, const console& to) const {
    auto* told = json_ ? to.err : to.out;
    for (auto& name : missing_nodes(cluster, wanted_))
      fmt::print(told, "missing: {}\n", name);
    if (auto here = static_cast<uint64_t>(cluster.devices_size()); here < devices_min_)
      fmt::print(told, "missing: {} of {}\n", devices_min_ - here, counted(devices_min_, "device"));
    if (json_)
      fmt::print(to.out, "{}\n", json_of(cluster));
    else if (wanted_.empty())
      fmt::print(to.out, "{}", info_text(cluster, coordinator, utc_offset_now()));
  }

  caf::expected<int> tell_loss(const std::optional<std::string>& loss, const console& to) const {
    if (!loss)
      return make_error(errc::timed_out,
                        fmt::format("node {} is not known to be gone, or not what it took with it", gone_));
    fmt::print(to.out, "{}\n", *loss);
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
