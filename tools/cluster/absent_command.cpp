#include "tools/cluster/absent_command.hpp"

#include "actors/configuration/log.hpp"
#include "client/client.hpp"
#include "messages/errc.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/options/configured_call.hpp"

#include <fmt/format.h>

#include <map>

namespace ringmaster {

namespace {

class absent_call final : public configured_call {
  void declare_options(option_table& table) override {
    table.form("RANK:CAUSE... [options]");
    table.about("For launchers: the processes of these ranks have ended. Ranks that wait for one which has not joined "
                "hear so at once, with the cause, in place of when their limit passes; nothing else changes. `caf-run` "
                "says it of the ranks that it starts.");
    table.positional("RANK:CAUSE", [this](const std::string& text) { return take(text); })
      .says("a rank's number, and what became of its process, as in \"3:it exited with status 1\"")
      .many();
    join_option(table);
    table.text("--group", group_).says("NAME", "by which the ranks meet").otherwise("world");
    key_option(table, "--timeout", "node.join-timeout").says("T", "how long to look for the coordinator, as in 30s");
  }

  caf::error take(const std::string& text) {
    auto colon = text.find(':');
    auto number = parse_whole(text.substr(0, colon), 0, UINT32_MAX);
    if (!number || colon == std::string::npos || colon + 1 == text.size())
      return make_error(errc::invalid_argument,
                        fmt::format("\"{}\" is no rank with a cause, such as \"3:it exited with status 1\"", text));
    causes_[static_cast<uint32_t>(*number)] = text.substr(colon + 1);
    return caf::none;
  }

  caf::error check() override {
    return causes_.empty() ? make_error(errc::invalid_argument, "which rank, and why? ringmaster absent 3:CAUSE")
                           : caf::error{};
  }

  caf::expected<int> run(const console& to) override {
    start_log(cfg_.values());
    caf::actor_system system{cfg_};
    auto host = coordinator_for("ringmaster absent", system, cfg_.values(), to.err);
    if (!host)
      return std::move(host.error());
    client user{system, *host};
    for (auto& [rank, cause] : causes_)
      if (auto problem = user.tell_absent(group_, rank, cause))
        return problem;
    return exit_ok;
  }

  std::map<uint32_t, std::string> causes_;
  std::string group_ = "world";
};

} // namespace

tool_command absent_command() {
  return tool_command::of<absent_call>("absent",
                                       "says that ranks' processes have ended, so that nobody waits for them");
}

} // namespace ringmaster
