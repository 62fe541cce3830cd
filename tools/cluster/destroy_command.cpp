#include "tools/cluster/destroy_command.hpp"
#include "tools/clients/cluster_connection.hpp"

#include "actors/configuration/log.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "messages/errc.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "tools/cluster/info_text.hpp"
#include "tools/options/configured_call.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <set>

namespace ringmaster {

namespace {

class destroy_call final : public configured_call {
  void declare_options(option_table& table) override {
    table.form("N... | all [options]");
    table.about("Ends communicators, whoever made them: what is in flight on them fails, and their devices are free. "
                "`ringmaster info` says which there are.");
    table.positional("N", [this](const std::string& text) { return take(text); })
      .says("the numbers of communicators, or all")
      .offers({"all"})
      .many();
    join_option(table);
    key_option(table, "--timeout", "node.join-timeout")
      .says("T", "how long a coordinator that stands still is waited for, as in 30s");
    table.closing("The exit status is 0 if all of them have ended.");
  }

  caf::error take(const std::string& text) {
    if (text == "all") {
      all_ = true;
      return caf::none;
    }
    auto number = parse_whole(text, 1);
    if (!number)
      return make_error(errc::invalid_argument, "which communicator? " + render(number.error()));
    communicators_.insert(communicator_id{*number});
    return caf::none;
  }

  caf::error check() override {
    if (all_ == communicators_.empty())
      return caf::none;
    return make_error(errc::invalid_argument,
                      "destroy wants the numbers of communicators, or \"all\"; `ringmaster info` "
                      "says which there are");
  }

  caf::expected<int> run(const console& to) override {
    start_log(cfg_.values());
    caf::actor_system system{cfg_};
    auto host = coordinator_for("ringmaster destroy", system, cfg_.values(), to.err);
    if (!host)
      return std::move(host.error());
    client user{system, *host};
    if (all_) {
      auto cluster = user.info();
      if (!cluster)
        return std::move(cluster.error());
      communicators_ = communicators_of(*cluster);
      if (communicators_.empty())
        fmt::print(to.out, "there is no communicator\n");
    }
    int status = exit_ok;
    for (auto id : communicators_)
      if (auto problem = user.destroy(id)) {
        fmt::print(to.err, "ringmaster destroy: {}\n", render(problem));
        status = exit_failed;
      } else {
        fmt::print(to.out, "communicator {} is destroyed, its devices are free\n", id);
      }
    return status;
  }

  std::set<communicator_id> communicators_;
  bool all_ = false;
};

} // namespace

tool_command destroy_command() {
  return tool_command::of<destroy_call>("destroy", "ends communicators that somebody has left behind");
}

} // namespace ringmaster
