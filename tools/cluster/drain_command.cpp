#include "tools/cluster/drain_command.hpp"

#include "actors/configuration/log.hpp"
#include "client/client.hpp"
#include "messages/errc.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/options/configured_call.hpp"

#include <fmt/format.h>

namespace ringmaster {

namespace {

class drain_call final : public configured_call {
  void declare_options(option_table& table) override {
    table.about("Lets a node end without a loss. No communicator gets its devices any more; its ranks leave when what "
                "runs has ended: under \"shrink\" the others go on, under \"replace\" spares take over, with all that "
                "their memory holds. Of a communicator with the policy \"abort\" the end is waited for. Then the "
                "node's process ends, with status 0.");
    table
      .positional("NODE",
                  [this](const std::string& text) {
                    node_ = text;
                    return caf::error{};
                  })
      .says("its name, as `ringmaster status` has it")
      .needed();
    join_option(table);
    table.duration("--timeout", limit_ps_).says("T", "how long to wait until it has ended");
    table.closing(
      "The exit status is 0 if the node has ended. Where the limit passes, what it waited for is said; a node "
      "whose ranks have not all left is not drained any more, those that have stay away. One that has been told to end "
      "does so, though it may be later.");
  }

  caf::error check() override {
    if (node_.empty())
      return make_error(errc::invalid_argument,
                        "which node? ringmaster drain NODE; `ringmaster status` says which there are");
    if (limit_ps_ <= 0)
      return make_error(errc::invalid_argument, "--timeout 0 s leaves no time to wait in; such as 30s is right");
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    start_log(cfg_.values());
    caf::actor_system system{cfg_};
    auto host = coordinator_for("ringmaster drain", system, cfg_.values(), to.err);
    if (!host)
      return std::move(host.error());
    client user{system, *host};
    auto done = user.drain(node_, std::chrono::nanoseconds{limit_ps_ / 1000});
    if (!done)
      return std::move(done.error());
    for (auto& line : *done)
      fmt::print(to.out, "{}\n", line);
    fmt::print(to.out, "node {} has ended\n", node_);
    return exit_ok;
  }

  std::string node_;
  int64_t limit_ps_ = 60'000'000'000'000;
};

} // namespace

tool_command drain_command() {
  return tool_command::of<drain_call>("drain", "lets a node end without a loss");
}

} // namespace ringmaster
