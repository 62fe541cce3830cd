#include "tools/cluster/node_commands.hpp"

#include "client/cluster.hpp"
#include "actors/configuration/log.hpp"
#include "messages/errc.hpp"
#include "runtime/memory/memory_directory.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/cluster/adoption.hpp"
#include "tools/options/program.hpp"

#include <caf/io/middleman.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <cstring>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace ringmaster {

namespace {

constexpr auto coordinator_help = R"(usage: ringmaster coordinator [options]

  --port P         where to listen, 0 for any free port (7077)
  --host H         on which address (127.0.0.1); 0.0.0.0 lets other hosts join
  --port-file F    write the port here when listening
  --journal DIR    keep the operation log here
  --conf FILE      instead of config/caf-application.conf
  --section.key=V  any key of the configuration, such as --cluster.devices='["1,host,7080"]'
)";

constexpr auto node_help = R"(usage: ringmaster node [options]

  --join HOST:PORT  the coordinator to join; without it, wait for one that names this node in cluster.devices
  --devices K       how many devices to host, 1 at least (8)
  --name NAME       in logs
  --listen PORT     where other nodes and coordinators reach this one, 0 for any free port (0)
  --listen-host H   on which address (127.0.0.1)
  --conf FILE       instead of config/caf-application.conf
  --section.key=V   any key of the configuration
)";

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

/// Runs until a signal comes or `vital` ends. Returns the exit status.
int run_until_ended(caf::scoped_actor& self, const caf::actor_addr& vital, const std::function<void()>& now_and_then,
                    const std::function<void(const caf::down_msg&)>& other_down) {
  for (;;) {
    std::optional<caf::error> ended;
    self->receive([&](const caf::down_msg& x) {
                    if (x.source == vital)
                      ended = x.reason;
                    else
                      other_down(x);
                  },
                  caf::after(std::chrono::milliseconds{100}) >> [] {});
    if (ended)
      return report(*ended);
    if (auto signal = ending_signal()) {
      spdlog::info("ends on signal {}", strsignal(signal));
      return 0;
    }
    now_and_then();
  }
}

} // namespace

int coordinator_command(const std::vector<std::string>& args) {
  if (wants_help(args, coordinator_help))
    return 0;
  configuration cfg;
  std::map<std::string, std::string> own;
  short_options known{{"--port", "coordinator.port"}, {"--host", "coordinator.host"}, {"--journal", "journal.dir"},
                      {"--conf", "config-file"},      {"--port-file", ""}};
  if (auto problem = read_configuration(cfg, args, known, own))
    return report(problem, 2);
  auto& opts = cfg.values();
  std::vector<cluster_device> listed;
  for (auto& entry : opts.cluster.devices)
    listed.push_back(*parse_cluster_device(entry)); // validated
  block_ending_signals();
  caf::actor_system system{cfg};
  auto parts = cluster::start(system, opts, false);
  if (!parts)
    return report(parts.error());
  auto& coordinator = (*parts)->coordinator();
  auto port = system.middleman().publish(coordinator, opts.coordinator.port, opts.coordinator.host.c_str(), true);
  if (!port)
    return report(make_error(errc::io_error, fmt::format("cannot listen at {}:{} ({}); another process may have the port: "
                                                         "--port 0 takes a free one",
                                                         opts.coordinator.host, opts.coordinator.port, render(port.error()))));
  spdlog::info("coordinator at {}:{}", opts.coordinator.host, *port);
  if (own.count("--port-file") != 0)
    if (auto problem = write_port_file(own["--port-file"], *port))
      return report(problem);
  caf::scoped_actor self{system};
  self->monitor(coordinator);
  adoption nodes{system, self, coordinator, listed};
  return run_until_ended(self, coordinator.address(), [&] { nodes.try_missing(); },
                         [&](const caf::down_msg& x) { nodes.on_down(x); });
}

int node_command(const std::vector<std::string>& args) {
  if (wants_help(args, node_help))
    return 0;
  configuration cfg;
  std::map<std::string, std::string> own;
  short_options known{{"--join", "node.join"},          {"--devices", "device.count"},
                      {"--name", "node.name"},          {"--listen", "node.listen-port"},
                      {"--conf", "config-file"},        {"--listen-host", "node.listen-host"}};
  if (auto problem = read_configuration(cfg, args, known, own))
    return report(problem, 2);
  auto& opts = cfg.values();
  if (opts.device.count == 0)
    return report(make_error(errc::invalid_argument, "a node with no device would do nothing for the cluster: --devices 1 "
                                                     "or more; `ringmaster coordinator` is the one that hosts none"), 2);
  start_log(opts);
  block_ending_signals();
  caf::actor_system system{cfg};
  auto memory = memory_directory::open(opts.device.memory_dir, memory_files_bytes(opts));
  if (!memory)
    return report(memory.error());
  coordinator_actor host;
  if (!opts.node.join.empty()) {
    auto found = connect(system, opts.node.join, opts.node.join_timeout);
    if (!found) {
      report(found.error());
      std::_Exit(1); // a connection attempt that the system still waits for must not hold us
    }
    host = std::move(*found);
  }
  auto settings = node_settings(opts, memory->path());
  auto name = settings.name;
  auto self_node = system.spawn(node, std::move(settings));
  auto port = system.middleman().publish(self_node, opts.node.listen_port, opts.node.listen_host.c_str(), true);
  if (!port) {
    caf::anon_send_exit(self_node, caf::exit_reason::user_shutdown);
    return report(make_error(errc::io_error, fmt::format("cannot listen at {}:{}: {}", opts.node.listen_host,
                                                         opts.node.listen_port, render(port.error()))));
  }
  caf::scoped_actor self{system};
  self->monitor(self_node);
  spdlog::info("node {} at {}:{} with {} {}", name, opts.node.listen_host, *port, counted(opts.device.count, "device"),
               host ? "joins " + opts.node.join
                    : "waits for a coordinator that lists it in cluster.devices (--join HOST:PORT joins one)");
  if (host) {
    proto::Adopt join;
    join.set_host(opts.node.listen_host);
    join.set_port(*port);
    self->send(self_node, std::move(join), caf::actor_cast<caf::strong_actor_ptr>(host));
  }
  auto status = run_until_ended(self, self_node.address(), [] {}, [](const caf::down_msg&) {});
  if (status == 0) {
    self->send_exit(self_node, caf::exit_reason::user_shutdown);
    self->receive([](const caf::down_msg&) {}, caf::after(std::chrono::seconds{10}) >> [] {});
  }
  return status;
}

} // namespace ringmaster
