#include "actors/hosts/connections.hpp"
#include "actors/hosts/open_connection.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "client/cluster.hpp"
#include "client/own_node.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/health/connection_silence.hpp"
#include "runtime/logging/log.hpp"
#include "runtime/text/endpoint.hpp"
#include "runtime/text/own_address.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/cluster/serving_process.hpp"
#include "tools/console/ending_signals.hpp"
#include "tools/options/commands.hpp"
#include "tools/options/configured_call.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <future>
#include <spdlog/spdlog.h>
#include <thread>
#include <utility>

namespace ringmaster {

namespace {

/// Connects to the coordinator. Waits up to `node.join-timeout` for one that starts after this node, or that the
/// network does not reach yet.
caf::expected<coordinator_actor> connect_when_reachable(caf::actor_system& system, const options& opts) {
  constexpr auto try_again = std::chrono::milliseconds{100};
  const auto give_up = awake_clock::actor_now() + opts.node.join_timeout;
  for (bool warned = false;;) {
    const auto left = give_up - awake_clock::actor_now();
    auto found = connect(system, opts.node.join, std::max<caf::timespan>(left, try_again), opts.node.orphan_timeout);
    if (found || code_of(found.error()) != errc::unreachable || left <= try_again)
      return found;
    if (!std::exchange(warned, true))
      spdlog::warn("waits for the coordinator at {}, for {} at most: {}", opts.node.join,
                   duration_text(opts.node.join_timeout), render(found.error()));
    std::this_thread::sleep_for(try_again);
  }
}

/// The same for a node that has lost its coordinator, within `limit`. Any error may be temporary, except another
/// version.
caf::expected<coordinator_actor> connect_again(caf::actor_system& system, const options& opts, caf::timespan limit) {
  constexpr auto try_again = std::chrono::milliseconds{500};
  constexpr caf::timespan one_try = std::chrono::seconds{5};
  const auto give_up = awake_clock::now() + limit;
  for (;;) {
    const auto left = std::max<caf::timespan>(give_up - awake_clock::now(), caf::timespan{0});
    auto found = connect(system, opts.node.join, std::clamp<caf::timespan>(left, try_again, one_try),
                         opts.node.orphan_timeout);
    if (found || code_of(found.error()) == errc::wrong_version || left <= try_again || no_more_connecting::is_so())
      return found;
    std::this_thread::sleep_for(try_again);
  }
}

/// The result of `finds`, which runs on another thread; none if this process is asked to stop. Then `at_the_end` is
/// set, so that attempts to connect stop.
std::optional<caf::expected<coordinator_actor>> connect_unless_ended(
  const std::function<caf::expected<coordinator_actor>()>& finds, std::optional<no_more_connecting>& at_the_end) {
  auto coming = std::async(std::launch::async, finds);
  while (coming.wait_for(no_more_connecting::look) != std::future_status::ready)
    if (signal_to_stop() != 0) {
      at_the_end.emplace();
      coming.wait();
      return std::nullopt;
    }
  return coming.get();
}

class node_call final : public configured_call {
  void declare_options(option_table& table) override {
    table.about("A process with devices that joins a coordinator, or waits for one that lists it. Exits on SIGTERM or "
                "SIGINT.");
    key_option(table, "--join", "node.join")
      .says("HOST:PORT", "the coordinator to join; without it, waits for one that lists this node in cluster.devices");
    key_option(table, "--devices", "device.count").says("K", "the number of devices, at least 1");
    key_option(table, "--name", "node.name")
      .says("NAME", "the name in logs and commands")
      .otherwise("host and process id");
    key_option(table, "--listen", "node.listen-port")
      .says("PORT", "the port for other nodes and coordinators; 0: any free port");
    key_option(table, "--listen-host", "node.listen-host")
      .says("H", "the address to listen at; auto: the one that leads to the coordinator; 0.0.0.0 or ::: all");
    trust_options();
  }

  caf::error check() override {
    if (cfg_.values().device.count == 0)
      return make_error(
        errc::invalid_argument,
        "a node needs a device: --devices 1 or more; `ringmaster coordinator` is a process without devices");
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    auto& opts = cfg_.values();
    start_log(opts);
    block_ending_signals();
    orphan_wait orphaned{opts.node.orphan_timeout};
    for (;;) {
      auto status = live(to, orphaned);
      if (status || orphaned.patience().count() == 0 || !may_join_again(status.error(), orphaned))
        return status;
      const auto was_orphaned = orphaned.is_orphaned();
      orphaned.lost(awake_clock::now());
      const auto left = orphaned.left(awake_clock::now());
      if (left.count() == 0)
        return given_up(orphaned, status.error());
      if (!was_orphaned)
        spdlog::warn("{}; this node's devices have ended with it, and it tries to join again with new ones, for {} "
                     "(node.orphan-timeout)",
                     render(status.error()), duration_text(left));
      if (signal_to_stop() != 0)
        return exit_ok;
      std::this_thread::sleep_for(std::min<caf::timespan>(left, std::chrono::milliseconds{500}));
    }
  }

  /// Whether another attempt to join after this error may succeed.
  static bool may_join_again(const caf::error& why, const orphan_wait& orphaned) {
    const auto code = code_of(why);
    return code == errc::unreachable
           || (orphaned.is_orphaned()
               && (code == errc::timed_out || code == errc::in_use || code == errc::io_error
                   || code == errc::out_of_memory));
  }

  static caf::error given_up(const orphan_wait& orphaned, const caf::error& why) {
    return make_error(errc::unreachable, fmt::format("the coordinator is gone, and this node could not join it again "
                                                     "within {} (node.orphan-timeout): {}",
                                                     duration_text(orphaned.patience()), render(why)));
  }

  /// Joins a coordinator, or waits for one, and hosts devices until it is lost. Each time in a new actor system, which
  /// is another process to the coordinator, so nothing is confused with a connection whose loss it has not noticed.
  caf::expected<int> live(const console& to, orphan_wait& orphaned) {
    auto& opts = cfg_.values();
    std::optional<no_more_connecting> at_the_end; // silent peers must not delay the exit
    caf::actor_system system{cfg_};
    coordinator_actor host;
    if (!opts.node.join.empty()) {
      auto found = connect_unless_ended(
        [&] {
          return orphaned.is_orphaned() ? connect_again(system, opts, orphaned.left(awake_clock::now()))
                                        : connect_when_reachable(system, opts);
        },
        at_the_end);
      if (!found)
        return exit_ok;
      if (!*found && !orphaned.is_orphaned())
        end_at_once("ringmaster node", found->error(), to.err);
      if (!*found) {
        at_the_end.emplace();
        return std::move(found->error());
      }
      host = std::move(**found);
    }
    auto hosted = own_node::start(system, opts, host, true);
    if (!hosted && orphaned.is_orphaned()) {
      at_the_end.emplace();
      return std::move(hosted.error());
    }
    if (!hosted)
      end_at_once("ringmaster node", hosted.error(), to.err);
    auto& self_node = **hosted;
    spdlog::info("node {} at {} with {} {}; configuration: {}", self_node.name(),
                 text_of(endpoint{self_node.address(), self_node.port()}), counted(opts.device.count, "device"),
                 host
                   ? (orphaned.is_orphaned() ? "joins again " : "joins ") + opts.node.join
                   : fmt::format("waits for a coordinator{} that lists it in cluster.devices (--join HOST:PORT joins "
                                 "one)",
                                 is_loopback(self_node.address()) ? " of this host, which --listen-host changes," : ""),
                 configuration_origin());
    caf::scoped_actor self{system};
    self->monitor(self_node.handle());
    auto look = [&]() -> caf::error {
      if (orphaned.is_orphaned() && self_node.has_joined())
        orphaned.joined();
      if (orphaned.left(awake_clock::now()).count() > 0 || orphaned.patience().count() == 0)
        return {};
      return make_error(errc::timed_out, "no coordinator has let it join");
    };
    auto status = run_until_ended(self, self_node.handle().address(), look, [](const caf::down_msg&) {});
    if (self_node.has_joined())
      orphaned.joined(); // it may be lost again by now
    at_the_end.emplace();
    if (!status && status.error() != caf::exit_reason::user_shutdown)
      return std::move(status.error());
    if (!status)
      spdlog::info("node {} has been drained: ends", self_node.name());
    return exit_ok;
  }
};

} // namespace

tool_command node_command() {
  return tool_command::of<node_call>("node", "a process with devices that joins a coordinator");
}

} // namespace ringmaster
