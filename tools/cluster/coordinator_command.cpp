#include "tools/cluster/coordinator_command.hpp"

#include "actors/hosts/connections.hpp"
#include "actors/hosts/open_connection.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/configuration/places.hpp"
#include "runtime/logging/log.hpp"
#include "runtime/text/endpoint.hpp"
#include "runtime/text/own_address.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/cluster/adoption.hpp"
#include "tools/cluster/serving_process.hpp"
#include "tools/console/ending_signals.hpp"
#include "tools/console/ready_file.hpp"
#include "tools/options/configured_call.hpp"

#include <caf/io/middleman.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sys/stat.h>
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

/// Null where none is configured.
caf::expected<std::unique_ptr<metadata_store>> open_own_store(const options& opts) {
  std::filesystem::path dir = opts.coordinator.store_dir;
  if (dir.empty() && !opts.journal.dir.empty())
    dir = std::filesystem::path{opts.journal.dir} / "store";
  if (dir.empty())
    return std::unique_ptr<metadata_store>{};
  return metadata_store::open({.dir = std::move(dir),
                               .sync = opts.journal.sync != "never" && !opts.journal.dir.empty()});
}

class coordinator_call final : public configured_call {
public:
  explicit coordinator_call(shared_store_opener open_shared) : open_shared_(std::move(open_shared)) {}

private:
  void declare_options(option_table& table) override {
    table.about(
      "The coordinator of a cluster of several processes: listens, starts communicators and keeps the journal. SIGTERM "
      "stops it for a restart: with --journal the cluster waits for its return. SIGINT (Ctrl-C) ends its cluster.");
    key_option(table, "--port", "coordinator.port").says("P", "the port to listen at; 0: any free port");
    key_option(table, "--host", "coordinator.host")
      .says("H", "the address to listen at, such as ::1; 0.0.0.0, or :: with IPv6, lets other hosts join");
    table.file("--port-file", port_file_).says("F", "a file for the port, written when the coordinator listens");
    key_option(table, "--journal", "journal.dir")
      .says("DIR", "the directory of the operation log")
      .offers_directories();
    trust_options();
    table.flag("--standby", standby_).says("with coordinator.store=\"etcd\": waits while another coordinator leads");
    table.closing("--cluster.devices='[\"1,host,7080\"]' lists devices to connect to.");
  }

  caf::error check() override {
    if (standby_ && cfg_.values().coordinator.store != "etcd")
      return invalid("--standby needs coordinator.store=\"etcd\": only a store that several hosts share can say which "
                     "coordinator leads");
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    auto& opts = cfg_.values();
    const bool is_shared = opts.coordinator.store == "etcd";
    if (is_shared && !open_shared_)
      return become_program_with_etcd();
    std::vector<cluster_device> listed;
    for (auto& entry : opts.cluster.devices)
      listed.push_back(*parse_cluster_device(entry)); // validated
    block_ending_signals();
    if (is_shared)
      start_log(opts);
    auto opened = is_shared ? open_shared_(opts, standby_, [] { return signal_to_stop() != 0; }) : open_own_store(opts);
    if (!opened && code_of(opened.error()) == errc::aborted && ending_signal() != 0)
      return exit_ok;
    if (!opened)
      return std::move(opened.error());
    const std::shared_ptr<metadata_store> store = std::move(*opened);
    std::optional<no_more_connecting> at_the_end; // silent peers must not delay the exit
    caf::actor_system system{cfg_};
    const auto launcher = outer_launcher();
    TRY(parts, cluster::start(system, opts, false, launcher, store));
    auto& coordinator = (*parts)->coordinator();
    TRY(where, listen(system, coordinator));
    spdlog::info("coordinator at {} (configuration: {})", text_of(*where), configuration_origin());
    if (store != nullptr)
      store->announce(text_of(*where));
    if (!port_file_.empty())
      RETURN_ERROR(write_ready_file(port_file_, std::to_string(where->port)));
    caf::scoped_actor self{system};
    self->monitor(coordinator);
    adoption nodes{system, self, coordinator, listed};
    bool holds = true;
    auto signal = run_until_ended(
      self, coordinator.address(),
      [&]() -> caf::error {
        nodes.try_missing();
        if (store == nullptr)
          return caf::none;
        const bool held_before = std::exchange(holds, store->holds());
        if (!store->has_files() || (holds && !held_before)) // it looks at what has waited
          self->send(coordinator, atom::tick_v);
        return store->deposed();
      },
      [&](const caf::down_msg& x) { nodes.on_down(x); });
    const auto records = (*parts)->records();
    if (store != nullptr && (store->is_shared() || (signal && is_to_return(launcher, *signal))))
      leave_to_next(system, coordinator, *store, *records, signal ? caf::none : signal.error(), to);
    at_the_end.emplace();
    parts->reset();
    if (!signal)
      return std::move(signal.error());
    RETURN_ERROR(what_lacks(*records, store.get()));
    return exit_ok;
  }

  /// A launcher ends the whole job, and Ctrl-C the cluster.
  static bool is_to_return(const served_launcher& launcher, int signal) {
    return launcher.job.empty() && signal != SIGINT;
  }

  /// Error: what the journal or the store lacks.
  static caf::error what_lacks(const journal_health& records, const metadata_store* store) {
    if (records.records_lost() > 0)
      return make_error(errc::io_error, records.trouble());
    if (store != nullptr && !store->trouble().empty())
      return make_error(errc::io_error, store->trouble());
    return caf::none;
  }

  caf::expected<endpoint> listen(caf::actor_system& system, const coordinator_actor& coordinator) const {
    auto& wanted = cfg_.values().coordinator;
    const auto at = wanted.host == "auto" ? loopback_address() : listening_address(wanted.host);
    auto port = listen_for(coordinator, system, at, wanted.port);
    if (port)
      return endpoint{at, *port};
    if (code_of(port.error()) == errc::invalid_argument)
      return std::move(port.error());
    return make_error(errc::io_error,
                      fmt::format("cannot listen at {}: {}", text_of(endpoint{at, wanted.port}), render(port.error())));
  }

  /// Exits. Nothing is taken down: to nodes and clients this is a coordinator that was killed, and they go on with the
  /// next one.
  [[noreturn]] static void leave_to_next(caf::actor_system& system, const coordinator_actor& coordinator,
                                         metadata_store& store, const journal_health& records, caf::error problem,
                                         const console& to) {
    if (!problem && store.holds())
      if (auto unwritten = client{system, coordinator}.journal_flush())
        spdlog::warn("the journal may lack its last records: {}", render(unwritten));
    store.hand_over();
    if (!problem)
      problem = what_lacks(records, &store);
    if (problem)
      end_at_once("ringmaster coordinator", problem, to.err);
    spdlog::info(store.is_shared() ? "another coordinator may lead now"
                                   : "the cluster waits for the next coordinator with this journal");
    std::fflush(nullptr);
    std::_Exit(exit_ok);
  }

  /// The same command in the program that can reach etcd. Returns if there is none. Errors: io_error.
  static caf::error become_program_with_etcd() {
    const auto program = (program_directory() / etcd_program).string();
    std::ifstream words{"/proc/self/cmdline", std::ios::binary};
    std::vector<std::string> arguments;
    for (std::string word; std::getline(words, word, '\0');)
      arguments.push_back(std::move(word));
    arguments.erase(arguments.begin()); // "coordinator" remains in its place
    std::vector<char*> pointers;
    for (auto& each : arguments)
      pointers.push_back(each.data());
    pointers.push_back(nullptr);
    ::execv(program.c_str(), pointers.data());
    return make_error(errc::io_error,
                      fmt::format("coordinator.store=\"etcd\" needs the program {}: {}; `./run ha` builds it, "
                                  "and the Debian package ringmaster-gateway has it",
                                  program, std::strerror(errno)));
  }

  static constexpr auto etcd_program = "ringmaster-coordinator";

  const shared_store_opener open_shared_;
  std::string port_file_;
  bool standby_ = false;
};

} // namespace

tool_command coordinator_command(shared_store_opener open_shared) {
  tool_command result;
  result.name = "coordinator";
  result.summary = "the coordinator of a cluster of several processes";
  result.make = [open_shared = std::move(open_shared)] { return std::make_unique<coordinator_call>(open_shared); };
  return result;
}

tool_command coordinator_command() {
  return coordinator_command(shared_store_opener{});
}

} // namespace ringmaster
