#include "tools/cluster/node_commands.hpp"
#include "tools/clients/cluster_connection.hpp"

#include "actors/configuration/log.hpp"
#include "actors/hosts/connections.hpp"
#include "actors/hosts/open_connection.hpp"
#include "client/cluster.hpp"
#include "client/own_node.hpp"
#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/cluster/adoption.hpp"
#include "tools/console/ending_signals.hpp"
#include "tools/console/own_memory.hpp"
#include "tools/options/configured_call.hpp"

#include <algorithm>
#include <caf/io/middleman.hpp>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <future>
#include <spdlog/spdlog.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace ringmaster {

namespace {

/// Written beside it and renamed, so that whoever waits for the file never sees half of it.
caf::error write_port_file(const std::string& path, uint16_t port) {
  auto draft = path + ".new";
  auto text = std::to_string(port);
  int file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool written = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0)
    ::close(file);
  if (!written || ::rename(draft.c_str(), path.c_str()) != 0)
    return make_error(errc::io_error, fmt::format("cannot write the port file {}: {}", path, std::strerror(errno)));
  return caf::none;
}

/// Whether somebody wants this process to end, which is said.
bool is_to_end() {
  auto signal = ending_signal();
  if (signal != 0)
    spdlog::info("ends on signal {}", strsignal(signal));
  return signal != 0;
}

bool nobody_listens(const caf::error& why) {
  return code_of(why) == errc::unreachable && render(why).find(std::strerror(ECONNREFUSED)) != std::string::npos;
}

/// As `connect`, also where the coordinator begins after this node: it is looked for until somebody listens.
caf::expected<coordinator_actor> connect_when_it_listens(caf::actor_system& system, const options& opts) {
  constexpr auto try_again = std::chrono::milliseconds{100};
  const auto give_up = std::chrono::steady_clock::now() + opts.node.join_timeout;
  for (bool told = false;;) {
    const auto left = give_up - std::chrono::steady_clock::now();
    auto found = connect(system, opts.node.join, std::max<caf::timespan>(left, try_again));
    if (found || !nobody_listens(found.error()) || left <= try_again)
      return found;
    if (!std::exchange(told, true))
      spdlog::warn("waits for the coordinator at {}, for {} at most: {}", opts.node.join,
                   duration_text(opts.node.join_timeout), render(found.error()));
    std::this_thread::sleep_for(try_again);
  }
}

/// The same; nothing where this process was told to end meanwhile. Then `at_the_end` is made: what still connects
/// ends behind this call.
std::optional<caf::expected<coordinator_actor>> connect_unless_ended(caf::actor_system& system, const options& opts,
                                                                     std::optional<no_more_connecting>& at_the_end) {
  auto coming = std::async(std::launch::async, [&] { return connect_when_it_listens(system, opts); });
  while (coming.wait_for(no_more_connecting::look) != std::future_status::ready)
    if (is_to_end()) {
      at_the_end.emplace();
      coming.wait();
      return std::nullopt;
    }
  return coming.get();
}

/// Runs until a signal comes, or `vital` ends, which is an error. Returns the exit status.
caf::expected<int> run_until_ended(caf::scoped_actor& self, const caf::actor_addr& vital,
                                   const std::function<void()>& now_and_then,
                                   const std::function<void(const caf::down_msg&)>& other_down) {
  freed_memory freed;
  for (;;) {
    std::optional<caf::error> ended;
    self->receive(
      [&](const caf::down_msg& x) {
        if (x.source == vital)
          ended = x.reason;
        else
          other_down(x);
      },
      caf::after(std::chrono::milliseconds{100}) >> [] {});
    if (ended)
      return std::move(*ended);
    if (is_to_end())
      return exit_ok;
    now_and_then();
    freed.give_back_now_and_then();
  }
}

class coordinator_call final : public configured_call {
  void declare_options(option_table& table) override {
    table.about(
      "The host side of a cluster of several processes: listens, starts communicators and keeps the journal. Ends "
      "with SIGTERM or SIGINT.");
    key_option(table, "--port", "coordinator.port").says("P", "where to listen, 0 for any free port");
    key_option(table, "--host", "coordinator.host").says("H", "on which address; 0.0.0.0 lets other hosts join");
    table.file("--port-file", port_file_).says("F", "write the port here when listening");
    key_option(table, "--journal", "journal.dir").says("DIR", "keep the operation log here").offers_directories();
    table.closing("--cluster.devices='[\"1,host,7080\"]' lists devices to connect to.");
  }

  caf::expected<int> run(const console&) override {
    auto& opts = cfg_.values();
    std::vector<cluster_device> listed;
    for (auto& entry : opts.cluster.devices)
      listed.push_back(*parse_cluster_device(entry)); // validated
    block_ending_signals();
    std::optional<no_more_connecting> at_the_end; // whoever is silent holds up nothing
    caf::actor_system system{cfg_};
    auto parts = cluster::start(system, opts, false);
    if (!parts)
      return std::move(parts.error());
    auto& coordinator = (*parts)->coordinator();
    auto port = listen_for(coordinator, system, opts.coordinator.host, opts.coordinator.port);
    if (!port && code_of(port.error()) == errc::invalid_argument)
      return std::move(port.error());
    if (!port)
      return make_error(errc::io_error, fmt::format("cannot listen at {}:{}: {}", opts.coordinator.host,
                                                    opts.coordinator.port, render(port.error())));
    spdlog::info("coordinator at {}:{} (configuration: {})", opts.coordinator.host, *port, configuration_origin());
    if (!port_file_.empty())
      if (auto problem = write_port_file(port_file_, *port))
        return problem;
    caf::scoped_actor self{system};
    self->monitor(coordinator);
    adoption nodes{system, self, coordinator, listed};
    auto status = run_until_ended(
      self, coordinator.address(), [&] { nodes.try_missing(); }, [&](const caf::down_msg& x) { nodes.on_down(x); });
    at_the_end.emplace();
    auto records = (*parts)->records();
    parts->reset();
    if (status && records->records_lost() > 0)
      return make_error(errc::io_error, records->trouble());
    return status;
  }

  std::string port_file_;
};

class node_call final : public configured_call {
  void declare_options(option_table& table) override {
    table.about("A process with devices that joins a coordinator, or waits for one that lists it. Ends with SIGTERM or "
                "SIGINT.");
    key_option(table, "--join", "node.join")
      .says("HOST:PORT", "the coordinator to join; without it, wait for one that names this node in cluster.devices");
    key_option(table, "--devices", "device.count").says("K", "how many devices to host, 1 at least");
    key_option(table, "--name", "node.name").says("NAME", "in logs").otherwise("host and process id");
    key_option(table, "--listen", "node.listen-port")
      .says("PORT", "where other nodes and coordinators reach this one, 0 for any free port");
    key_option(table, "--listen-host", "node.listen-host")
      .says("H", "on which address; auto: on all, and others are told the one that leads to the coordinator");
  }

  caf::error check() override {
    if (cfg_.values().device.count == 0)
      return make_error(errc::invalid_argument,
                        "a node with no device would do nothing for the cluster: --devices 1 or "
                        "more; `ringmaster coordinator` is the one that hosts none");
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    auto& opts = cfg_.values();
    start_log(opts);
    block_ending_signals();
    std::optional<no_more_connecting> at_the_end; // whoever is silent holds up nothing
    caf::actor_system system{cfg_};
    coordinator_actor host;
    if (!opts.node.join.empty()) {
      auto found = connect_unless_ended(system, opts, at_the_end);
      if (!found)
        return exit_ok;
      if (!*found)
        end_at_once("ringmaster node", found->error(), to.err);
      host = std::move(**found);
    }
    auto hosted = own_node::start(system, opts, host, true);
    if (!hosted)
      end_at_once("ringmaster node", hosted.error(), to.err);
    auto& self_node = **hosted;
    spdlog::info("node {} at {}:{} with {} {}; configuration: {}", self_node.name(), self_node.address(),
                 self_node.port(), counted(opts.device.count, "device"),
                 host ? "joins " + opts.node.join
                      : "waits for a coordinator that lists it in cluster.devices (--join HOST:PORT joins one)",
                 configuration_origin());
    caf::scoped_actor self{system};
    self->monitor(self_node.handle());
    auto status = run_until_ended(
      self, self_node.handle().address(), [] {}, [](const caf::down_msg&) {});
    at_the_end.emplace();
    if (status || status.error() != caf::exit_reason::user_shutdown)
      return status;
    spdlog::info("node {} has been drained: ends", self_node.name());
    return exit_ok;
  }
};

} // namespace

tool_command coordinator_command() {
  return tool_command::of<coordinator_call>("coordinator", "the host side of a cluster of several processes");
}

tool_command node_command() {
  return tool_command::of<node_call>("node", "a process with devices that joins a coordinator");
}

} // namespace ringmaster
