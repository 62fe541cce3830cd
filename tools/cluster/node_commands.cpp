#include "actors/calls/await_down.hpp"
#include "actors/configuration/settings.hpp"
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
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/cluster/adoption.hpp"
#include "tools/console/ending_signals.hpp"
#include "tools/console/own_memory.hpp"
#include "tools/console/ready_file.hpp"
#include "tools/options/commands.hpp"
#include "tools/options/configured_call.hpp"

#include <algorithm>
#include <caf/io/middleman.hpp>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <future>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace ringmaster {

namespace {

/// The launcher's job, and how to report ranks that leave: by lines "lost 3" and "finalized 3" to a pipe that the
/// launcher reads.
served_launcher outer_launcher() {
  constexpr auto group_of_launcher = "world"; // of caf-run's ranks; groups within it have other names
  auto variable = [](const char* name) {
    const auto* value = std::getenv(name);
    return std::string{value == nullptr ? "" : value};
  };
  served_launcher result{variable("RINGMASTER_JOB")};
  const auto pipe = parse_whole(variable("RINGMASTER_NOTICES_FD"), 0, INT_MAX);
  struct stat about {};
  if (!pipe || ::fstat(static_cast<int>(*pipe), &about) != 0 || !S_ISFIFO(about.st_mode))
    return result;
  const auto fd = static_cast<int>(*pipe);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::fcntl(fd, F_SETFL, O_NONBLOCK); // a launcher that does not read must not block this process
  result.on_departure = [=](const rank_departure& x) {
    if (x.group != group_of_launcher)
      return;
    const auto line = fmt::format("{} {}\n", x.finalized ? "finalized" : "lost", x.rank);
    if (::write(fd, line.data(), line.size()) < 0)
      spdlog::debug("the notice \"{}\" cannot be sent to the launcher: {}", line, std::strerror(errno));
  };
  return result;
}

/// Whether this process has received a signal to stop, which is logged.
bool is_to_stop() {
  auto signal = ending_signal();
  if (signal != 0)
    spdlog::info("ends on signal {}", strsignal(signal));
  return signal != 0;
}

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
    if (is_to_stop()) {
      at_the_end.emplace();
      coming.wait();
      return std::nullopt;
    }
  return coming.get();
}

/// Runs until a signal arrives. Errors: `vital` has exited, or an error of `now_and_then`, which is called regularly.
caf::expected<int> run_until_ended(caf::scoped_actor& self, const caf::actor_addr& vital,
                                   const std::function<caf::error()>& now_and_then,
                                   const std::function<void(const caf::down_msg&)>& other_down) {
  constexpr auto look_every = std::chrono::milliseconds{250}; // an idle process should rarely wake
  freed_memory freed;
  for (;;) {
    if (auto down = await_down(*self, look_every)) {
      if (down->source == vital)
        return std::move(down->reason);
      other_down(*down);
    }
    if (is_to_stop())
      return exit_ok;
    RETURN_ERROR(now_and_then());
    freed.give_back_now_and_then();
  }
}

class coordinator_call final : public configured_call {
  void declare_options(option_table& table) override {
    table.about(
      "The coordinator of a cluster of several processes: listens, starts communicators and keeps the journal. Exits "
      "on SIGTERM or SIGINT.");
    key_option(table, "--port", "coordinator.port").says("P", "the port to listen at; 0: any free port");
    key_option(table, "--host", "coordinator.host")
      .says("H", "the address to listen at, such as ::1; 0.0.0.0, or :: with IPv6, lets other hosts join");
    table.file("--port-file", port_file_).says("F", "a file for the port, written when the coordinator listens");
    key_option(table, "--journal", "journal.dir")
      .says("DIR", "the directory of the operation log")
      .offers_directories();
    trust_options();
    table.closing("--cluster.devices='[\"1,host,7080\"]' lists devices to connect to.");
  }

  caf::expected<int> run(const console&) override {
    auto& opts = cfg_.values();
    std::vector<cluster_device> listed;
    for (auto& entry : opts.cluster.devices)
      listed.push_back(*parse_cluster_device(entry)); // validated
    block_ending_signals();
    std::optional<no_more_connecting> at_the_end; // silent peers must not delay the exit
    caf::actor_system system{cfg_};
    TRY(parts, cluster::start(system, opts, false, outer_launcher(), true));
    auto& coordinator = (*parts)->coordinator();
    const auto& host = opts.coordinator.host;
    const auto listens_at = host == "auto" ? loopback_address() : listening_address(host);
    auto port = listen_for(coordinator, system, listens_at, opts.coordinator.port);
    if (!port && code_of(port.error()) == errc::invalid_argument)
      return std::move(port.error());
    if (!port)
      return make_error(errc::io_error,
                        fmt::format("cannot listen at {}: {}", text_of(endpoint{listens_at, opts.coordinator.port}),
                                    render(port.error())));
    spdlog::info("coordinator at {} (configuration: {})", text_of(endpoint{listens_at, *port}), configuration_origin());
    if (!port_file_.empty())
      RETURN_ERROR(write_ready_file(port_file_, std::to_string(*port)));
    caf::scoped_actor self{system};
    self->monitor(coordinator);
    adoption nodes{system, self, coordinator, listed};
    const auto store = (*parts)->store();
    auto status = run_until_ended(
      self, coordinator.address(),
      [&] {
        nodes.try_missing();
        if (store != nullptr && !store->has_files())
          self->send(coordinator, atom::tick_v);
        return caf::error{};
      },
      [&](const caf::down_msg& x) { nodes.on_down(x); });
    at_the_end.emplace();
    auto records = (*parts)->records();
    parts->reset();
    if (status && records->records_lost() > 0)
      return make_error(errc::io_error, records->trouble());
    if (status && store != nullptr && !store->trouble().empty())
      return make_error(errc::io_error, store->trouble());
    return status;
  }

  std::string port_file_;
};

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
      if (is_to_stop())
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
    if (status || status.error() != caf::exit_reason::user_shutdown)
      return status;
    spdlog::info("node {} has been drained: ends", self_node.name());
    return exit_ok;
  }
};

} // namespace

tool_command coordinator_command() {
  return tool_command::of<coordinator_call>("coordinator", "the coordinator of a cluster of several processes");
}

tool_command node_command() {
  return tool_command::of<node_call>("node", "a process with devices that joins a coordinator");
}

} // namespace ringmaster
