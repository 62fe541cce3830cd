#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/configuration/places.hpp"
#include "runtime/text/own_address.hpp"
#include "runtime/trust/secret.hpp"
#include "tools/launch/certificate_directory.hpp"
#include "tools/launch/cluster_launch.hpp"
#include "tools/launch/program_processes.hpp"
#include "tools/launch/scratch_directory.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <unistd.h>

namespace ringmaster::launch {

namespace {

std::string variable(const char* name) {
  auto value = std::getenv(name);
  return value == nullptr ? std::string{} : value;
}

std::string slurm_name_of_this_host() {
  auto name = variable("SLURMD_NODENAME");
  return name.empty() ? own_host_name() : name;
}

/// The hosts of the hostfile or of the SLURM allocation; may be empty.
caf::expected<std::vector<node_place>> named_hosts(const command_line& line) {
  if (line.hostfile.empty()) {
    auto allocation = variable("SLURM_JOB_NODELIST");
    if (allocation.empty())
      return std::vector<node_place>{};
    return slurm_places(allocation, variable("SLURM_TASKS_PER_NODE"), line.devices(), slurm_name_of_this_host());
  }
  return read_hostfile(line.hostfile, line.devices());
}

/// As `printf %b` takes it.
std::string in_one_line(const std::filesystem::path& pem) {
  std::ifstream in{pem};
  std::string result;
  for (std::string line; std::getline(in, line);)
    result += line + "\\n";
  return result;
}

struct launch_places {
  std::vector<node_place> nodes;
  std::vector<rank_place> ranks;
};

caf::expected<launch_places> places_of(const command_line& line) {
  if (line.local_nodes > 0)
    return launch_places{local_places(line.local_nodes, line.devices()), {}};
  TRY(hosts, named_hosts(line));
  if (line.ranks == 0) {
    if (hosts->empty())
      return invalid("give either --local N or --hostfile FILE, or --ranks N; in an "
                     "allocation of SLURM's (SLURM_JOB_NODELIST) none is needed");
    return launch_places{std::move(*hosts), {}};
  }
  TRY(ranks, hosts->empty() ? caf::expected<std::vector<rank_place>>{local_ranks(line.ranks)}
                            : rank_places(line.ranks, *hosts));
  return launch_places{{}, std::move(*ranks)};
}

class launch_call final : public command_call {
  void declare(option_table& table) override {
    line_.add_to(table);
    table_ = &table;
  }
  caf::error check() override {
    RETURN_ERROR(line_.take_keys(table_->for_configuration()));
    return line_.check();
  }

  caf::expected<int> run(const console& to) override {
    if (std::ifstream conf{line_.conf}; conf) // the coordinator reports other mistakes in it
      RETURN_ERROR(line_.take_conf(std::string{std::istreambuf_iterator<char>{conf}, {}}));
    TRY(places, places_of(line_));
    const auto directory = program_directory().string();
    if (directory.empty())
      return make_error(errc::io_error, "cannot read /proc/self/exe");
    if (line_.binary.empty())
      line_.binary = directory + "/ringmaster";
    line_.gateway_binary = directory + "/ringmaster-gateway";
    if (line_.program.empty()) {
      line_.program = {line_.gateway_binary, "--grpc", line_.gateway};
      if (!line_.http.empty())
        line_.program.insert(line_.program.end(), {"--http", line_.http});
      line_.gateway.clear(); // it is the program
    }
    auto program = find_program(line_.program.front(), variable("PATH"), directory);
    if (!program) {
      fmt::print(to.err, "caf-run: {}\n", render(program.error()));
      return code_of(program.error()) == errc::io_error ? 126 : 127;
    }
    line_.program.front() = *program;
    line_.job = fmt::format("caf-run {:08x} on {}", std::random_device{}(), own_host_name());
    TRY(scratch, scratch_directory::make());
    RETURN_ERROR(find_secret(scratch->path()));
    RETURN_ERROR(find_certificates(scratch->path(), *places));
    TRY(watch, process_watch::make());
    return cluster_launch(line_, places->nodes, places->ranks, std::move(*scratch), **watch).run();
  }

  /// That of --secret-file, or a new one.
  caf::error find_secret(const std::string& directory) {
    if (line_.insecure)
      return caf::none;
    if (line_.secret_file.empty()) {
      line_.keeps_scratch = true;
      line_.secret_file = directory + "/secret";
      RETURN_ERROR(shared_secret::random().create(line_.secret_file));
    }
    line_.secret_file = std::filesystem::absolute(line_.secret_file).string();
    TRY(secret, shared_secret::read(line_.secret_file));
    line_.secret = secret->text();
    return caf::none;
  }

  /// Those of --certificates, or new ones: each host gets its own.
  caf::error find_certificates(const std::string& directory, const launch_places& places) {
    constexpr std::chrono::days of_a_run{30};
    if (!line_.tls && line_.certificates.empty())
      return caf::none;
    if (line_.certificates.empty()) {
      line_.keeps_scratch = true;
      line_.certificates = directory + "/certificates";
    }
    TRY(all,
        certificate_directory::open(std::filesystem::absolute(line_.certificates), std::chrono::system_clock::now()));
    TRY(own, all->for_host(own_host_name(), of_a_run));
    line_.own_files = {own->certificate.string(), own->key.string(), all->authority().string()};
    const auto add = [&](const std::string& host, bool local) -> caf::error {
      if (local || line_.host_certificates.contains(host))
        return caf::none;
      TRY(its, all->for_host(host.substr(host.find('@') + 1), of_a_run));
      line_.host_certificates[host] = fmt::format("{}\n{}\n{}", in_one_line(its->certificate), in_one_line(its->key),
                                                  in_one_line(all->authority()));
      return caf::none;
    };
    for (auto& each : places.nodes)
      RETURN_ERROR(add(each.host, each.local));
    for (auto& each : places.ranks)
      RETURN_ERROR(add(each.host, each.local));
    return caf::none;
  }

  command_line line_;
  const option_table* table_ = nullptr; ///< Lives as long as this call.
};

} // namespace

tool_command launch_command() {
  auto result = tool_command::of<launch_call>("caf-run", "starts a cluster and runs a program against it");
  result.program = "";
  result.failed_status = result.usage_status = cluster_launch::failed_status;
  return result;
}

} // namespace ringmaster::launch
