#include "tools/launch/command_line.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/configuration/options.hpp"
#include "runtime/text/own_address.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "tools/launch/hostfile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

namespace ringmaster::launch {

namespace {

caf::error wrong(std::string text) {
  return invalid(std::move(text));
}

caf::expected<std::chrono::milliseconds> parse_timeout(const std::string& text) {
  constexpr int64_t ps_in_ms = 1'000'000'000;
  TRY(time, parse_duration_ps(text));
  if (*time < ps_in_ms)
    return wrong("\"" + text + "\" is less than 1ms");
  return std::chrono::milliseconds{*time / ps_in_ms};
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view around = " \t\r\"";
  const auto first = text.find_first_not_of(around);
  return first == text.npos ? std::string_view{} : text.substr(first, text.find_last_not_of(around) + 1 - first);
}

/// The value of a key in a configuration file, without quotation marks; empty: none.
std::string value_in(std::string_view text, std::string_view section, std::string_view key) {
  bool inside = false;
  std::string result;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = trimmed(text.substr(0, end).substr(0, text.substr(0, end).find(';')));
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto equals = line.find('=');
    if (line.starts_with('['))
      inside = trimmed(line.substr(1, line.find(']') - 1)) == section;
    else if (inside && equals != line.npos && trimmed(line.substr(0, equals)) == key)
      result = trimmed(line.substr(equals + 1));
  }
  return result;
}

std::vector<std::string> configuration_keys() {
  std::vector<std::string> result;
  options defaults;
  for (const auto& x : option_entries(defaults))
    result.push_back(fmt::format("{}.{}", x.section, x.key));
  return result;
}

} // namespace

void command_line::add_to(option_table& table) {
  table.form("--local N [options] [--] PROGRAM [ARGUMENT...]");
  table.form("--hostfile FILE [options] [--] PROGRAM [ARGUMENT...]");
  table.form("--ranks N [--hostfile FILE] [options] [--] PROGRAM [ARGUMENT...]");
  table.form("--local N --gateway WHERE [options] [[--] PROGRAM [ARGUMENT...]]");
  table.about(
    "Starts a coordinator on this host and nodes here or on other hosts, waits until all have joined, runs PROGRAM "
    "with "
    "RINGMASTER_COORDINATOR=HOST:PORT in its environment, and stops everything when PROGRAM has exited. With --ranks "
    "it "
    "starts no nodes, but PROGRAM N times: each process is a node with one device and has the rank RINGMASTER_RANK of "
    "RINGMASTER_WORLD_SIZE (client/process_group.hpp).");
  table.rest("PROGRAM [ARGUMENT...]", program);
  table.number("--local", local_nodes, 1, max_nodes).says("N", "N nodes on this host").otherwise("");
  table.file("--hostfile", hostfile)
    .says("FILE",
          "one node a line: HOST [slots=DEVICES] [name=NAME], HOST:DEVICES, or n[1-4]:DEVICES; # begins a comment");
  table.number("--ranks", ranks, 1, max_ranks)
    .says("N", "starts PROGRAM N times, a rank each, here or on the hostfile's slots in order")
    .otherwise("");
  table.flag("--tag-output", tags_output).says("prefixes each line that a rank writes with \"[rank K] \"");
  table.number("--devices-per-node", devices_per_node, 1, node_place::max_devices)
    .says("K", "devices of a node without slots=, or ranks of a host")
    .otherwise(fmt::format("device.count in the file of --conf, or {}", usual_devices));
  table.number("--port", port, 0, 65535).says("P", "the coordinator's TCP port").otherwise("0: any that is free");
  table.parsed("--timeout", timeout, parse_timeout)
    .says("T", "how long nodes, or ranks, may take to join, such as 500ms, 30s or 2min")
    .otherwise("30s");
  table.file("--conf", conf)
    .also("--config-file")
    .says("FILE", "configuration of all processes, at the same path on every host");
  table.text("--journal", journal).says("DIR", "directory of the coordinator's operation log").offers_directories();
  table.number("--coordinator-restarts", coordinator_restarts, 0, 1'000'000)
    .says("N",
          "how often a coordinator that ends before its time is restarted: the cluster goes on where it was; 0: the "
          "cluster ends with it");
  table.text("--gateway", gateway)
    .says("WHERE", "also starts ringmaster-gateway, which serves gRPC there: HOST:PORT, or a file with listeners; "
                   "without PROGRAM until a signal comes")
    .offers_files();
  table.text("--gateway-http", http).says("HOST:PORT", "where that serves HTTP").otherwise("nowhere");
  table.text("--address", address)
    .says("HOST", "the address or name of this host at which all processes reach the coordinator, such as ::1")
    .otherwise("127.0.0.1, or ::1 without IPv4; with other hosts, the address that leads to them");
  table.file("--secret-file", secret_file)
    .says("FILE", "the secret that all processes of the cluster share, which other hosts get by ssh")
    .otherwise("a new one for this run");
  table.flag("--tls", tls).says("encrypts all connections between processes, with certificates made for this run");
  table.text("--certificates", certificates)
    .says("DIR", "the same, with the certificates that `ringmaster certificates` has made there, and its authority")
    .offers_directories();
  table.flag("--insecure", insecure)
    .says("requires no secret: every process that can connect may use and stop the cluster");
  table.file("--binary", binary).says("PATH", "the ringmaster program").otherwise("beside caf-run");
  table.text("--remote-binary", remote_binary).says("PATH", "the same on the other hosts").otherwise("the same path");
  table.text("--ssh", ssh).says("PROGRAM", "starts processes on other hosts");
  table.take_configuration(configuration_keys());
  table.flag("--completion", prints_completion).says("prints a script for completion in bash, and exits");
  table.closing(
    "Each line that the coordinator or a node writes goes to standard error after its name. The standard streams "
    "of PROGRAM are its own; of ranks, standard input is rank 0's. SIGINT, SIGTERM, SIGHUP and SIGQUIT go to PROGRAM, "
    "all of its ranks; the second one goes to everything. Ctrl-Z (SIGTSTP) stops all processes of this host, and fg "
    "continues them.\n\n"
    "A rank whose process exits is lost to the others, like a device that fails; they go on, and caf-run reports the "
    "rank and its status. A rank that exits with status 0 without finalize while others are at work counts as a "
    "failure "
    "with status 1.\n\n"
    "Keys of the configuration, as --section.key=value and in the file of --conf, are those of the coordinator, of the "
    "nodes, and of PROGRAM where it reads a configuration (RINGMASTER_CONF, RINGMASTER_OPTIONS). --coordinator.port, "
    "--coordinator.host and --device.count are the same as --port, --address and --devices-per-node. The file's "
    "device.count is the number of devices of a node if neither --devices-per-node nor the hostfile has it. The file's "
    "coordinator.port is ignored, since several runs may share a host; coordinator.host is used only if other hosts "
    "can reach it.\n\n"
    "In a SLURM allocation neither --local nor --hostfile is needed: SLURM_JOB_NODELIST names the hosts, and "
    "SLURM_TASKS_PER_NODE their devices or ranks.\n\n"
    "Exit status: PROGRAM's own, or 128 + n if signal n ended it, of the first rank that failed, 1 for one that left "
    "early without finalize; 125 if the cluster did not start; 126 if PROGRAM cannot be run, 127 if it does not "
    "exist.");
  table.common({"--local", "--hostfile", "--ranks", "--devices-per-node", "--tag-output", "--port", "--timeout",
                "--conf", "--journal"});
  table.add_example("caf-run --local 4 -- ringmaster demo", "a coordinator, 4 nodes with 2 devices each, the demo");
  table.add_example("caf-run --ranks 4 -- ./my_program", "a coordinator, and my_program as ranks 0 to 3");
  table.add_example("caf-run --local 4 --gateway 127.0.0.1:50051", "4 nodes, and clients connect by gRPC");
  table.add_example("caf-run --hostfile hosts -- ./my_program", "nodes on other hosts, by ssh");
}

caf::error command_line::take_conf(std::string_view text) {
  if (const auto count = value_in(text, "device", "count"); !devices_per_node && !count.empty()) {
    auto devices = parse_whole(count, 1, node_place::max_devices);
    if (!devices)
      return wrong(fmt::format("{}: device.count: {}", conf, render(devices.error())));
    devices_per_node = static_cast<uint32_t>(*devices);
  }
  const auto host = value_in(text, "coordinator", "host");
  if (address.empty() && !host.empty() && host != "auto" && !is_loopback(listening_address(host))
      && !is_any_address(host))
    address = host;
  if (secret_file.empty())
    secret_file = value_in(text, "trust", "secret-file");
  insecure = insecure || value_in(text, "trust", "insecure") == "true";
  const auto listens = value_in(text, "node", "listen-host");
  conf_places_nodes = !listens.empty() && listens != "auto" && !is_loopback(listening_address(listens));
  return caf::none;
}

std::vector<std::string> command_line::keys_for(bool on_this_host) const {
  auto result = keys;
  if (insecure)
    result.push_back("--trust.insecure=true");
  else if (!secret_file.empty()) // elsewhere it is in the environment
    result.push_back("--trust.secret-file=" + (on_this_host ? secret_file : std::string{}));
  if (on_this_host && !own_files.certificate.empty())
    result.insert(result.end(), {"--trust.certificate=" + own_files.certificate, "--trust.key=" + own_files.key,
                                 "--trust.authority=" + own_files.authority});
  return result;
}

std::string command_line::first_lines(const std::string& host) const {
  const auto found = host_certificates.find(host);
  return found == host_certificates.end() ? secret : fmt::format("{}\n{}", secret, found->second);
}

bool command_line::has_key(std::string_view key) const {
  const auto start = fmt::format("--{}=", key);
  return std::ranges::any_of(keys, [&](auto& x) { return x.starts_with(start); });
}

caf::error command_line::take_keys(const std::vector<std::string>& arguments) {
  for (auto& argument : arguments) {
    const auto equals = std::min(argument.find('='), argument.size());
    const auto name = argument.substr(0, equals);
    const auto value = argument.substr(std::min(equals + 1, argument.size()));
    auto number = [&](auto& target, uint64_t min, uint64_t max) -> caf::error {
      auto read = parse_whole(value, min, max);
      if (!read)
        return wrong(fmt::format("{}: {}", name, render(read.error())));
      target = static_cast<std::remove_reference_t<decltype(target)>>(*read);
      return caf::none;
    };
    caf::error problem;
    if (name == "--coordinator.port")
      problem = number(port, 0, 65'535);
    else if (name == "--coordinator.host")
      address = value;
    else if (name == "--device.count")
      problem = number(devices_per_node.emplace(), 1, node_place::max_devices);
    else if (name == "--trust.secret-file")
      secret_file = value;
    else if (name == "--trust.insecure")
      insecure = value != "false";
    else if (name == "--node.join")
      problem = wrong("--node.join: caf-run starts the coordinator that all join; to use another one, start PROGRAM "
                      "without caf-run, with RINGMASTER_COORDINATOR=HOST:PORT");
    else if (name == "--node.name")
      problem = wrong("--node.name: each node needs a name of its own; name= in the hostfile gives it one");
    else if (name.find('.') == std::string::npos)
      problem = wrong(name + " is for the commands of ringmaster");
    else
      keys.push_back(argument);
    if (problem)
      return problem;
  }
  return caf::none;
}

caf::error command_line::check() const {
  if (prints_completion)
    return wrong("--completion takes no other arguments");
  if (local_nodes > 0 && !hostfile.empty())
    return wrong("give either --local N or --hostfile FILE");
  if (local_nodes > 0 && ranks > 0)
    return wrong("--ranks N makes every process of PROGRAM a node: omit --local, or give --hostfile FILE");
  if (insecure && (tls || !certificates.empty()))
    return wrong("--insecure and --tls exclude each other");
  if (tags_output && ranks == 0)
    return wrong("--tag-output is for --ranks: the lines of one PROGRAM are its own");
  if (!http.empty() && gateway.empty())
    return wrong("--gateway-http is for --gateway WHERE");
  if (program.empty() && !gateway.empty() && ranks > 0)
    return wrong("--ranks starts PROGRAM as ranks, and there is none: name it, or give --local N");
  if (program.empty() && gateway.empty())
    return wrong("no PROGRAM: name what to run after the options, such as caf-run --local 2 -- ./my_program");
  return caf::none;
}

} // namespace ringmaster::launch
