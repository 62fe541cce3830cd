#include "tools/launch/node_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster::launch {

namespace {

// ssh does not pass signals on, so closing the shell's standard input stops the node: a background shell waits for that
// and sends SIGTERM, then SIGKILL. A paused process is not visible through ssh either: at each line of input the shell
// checks, and kills a process that is paused for `paused_limit`. It reads with a builtin, so that it leaves no process
// if the node exits first.
constexpr const char* remote_script
  = "exec 3<&0 4>&2; {} </dev/null 3<&- 4>&- & node=$!; {{ n=0; while read -r _ <&3; do s=; while read -r k s _; do [ "
    "\"$k\" = State: ] && break; done </proc/$node/status; [ \"$s\" = T ] && n=$((n+1)) || n=0; [ $n -gt {} ] && echo "
    "{} >&4 && kill -9 $node; done; exec 4>&-; kill $node; sleep 3; kill -9 $node; }} >/dev/null 2>&1 & guard=$!; exec "
    "4>&-; wait $node; status=$?; kill $guard; exit $status";
/// ssh exits when the other host is silent for this long. By default it would wait for many minutes.
constexpr const char *alive_interval = "ServerAliveInterval=10", *alive_count = "ServerAliveCountMax=3";

/// The secret comes as the first line of standard input, and then the certificate, with \n for its line breaks: other
/// users can read command lines.
constexpr std::string_view reads_secret
  = "IFS= read -r RINGMASTER_SECRET && export RINGMASTER_SECRET; ",
  reads_certificate
  = "IFS= read -r c && IFS= read -r k && IFS= read -r a && RINGMASTER_CERTIFICATE=$(printf %b \"$c\") && "
    "RINGMASTER_KEY=$(printf %b \"$k\") && RINGMASTER_AUTHORITY=$(printf %b \"$a\") && export "
    "RINGMASTER_CERTIFICATE RINGMASTER_KEY RINGMASTER_AUTHORITY; ";

void add_keys(const argument_list& keys, argument_list& arguments) {
  arguments.insert(arguments.end(), keys.begin(), keys.end());
}

void add_conf(const command_line& line, argument_list& arguments, bool on_this_host = true) {
  if (!line.conf.empty())
    arguments.insert(arguments.end(), {"--conf", line.conf});
  add_keys(line.keys_for(on_this_host), arguments);
}

/// For clients that need no other key.
void add_trust(const command_line& line, argument_list& arguments) {
  command_line trust;
  trust.insecure = line.insecure;
  trust.secret_file = line.secret_file;
  trust.own_files = line.own_files;
  add_keys(trust.keys_for(true), arguments);
}

std::string quoted_words(const argument_list& words) {
  std::string result;
  for (auto& word : words)
    result.append(result.empty() ? "" : " ").append(shell_quote(word));
  return result;
}

argument_list by_ssh(const command_line& line, const std::string& host, const std::string& name,
                     const std::string& script) {
  // The user's login shell may not be a POSIX shell, hence the second shell.
  auto seconds = std::chrono::ceil<std::chrono::seconds>(line.timeout).count();
  return {line.ssh,
          "-o",
          "BatchMode=yes",
          "-o",
          fmt::format("ConnectTimeout={}", seconds),
          "-o",
          alive_interval,
          "-o",
          alive_count,
          host,
          "sh -c "
            + shell_quote(std::string{line.secret.empty() ? "" : reads_secret}
                          + std::string{line.host_certificates.contains(host) ? reads_certificate : ""}
                          + fmt::format(remote_script, script, paused_limit.count(),
                                        shell_quote("caf-run: " + paused_text(name))))};
}

} // namespace

argument_list coordinator_command(const command_line& line, const std::string& port_file, bool all_local,
                                  const std::string& host) {
  argument_list result{line.binary, "coordinator", "--port", std::to_string(line.port)};
  if (!port_file.empty())
    result.insert(result.end(), {"--port-file", port_file});
  if (!all_local || !host.empty())
    result.insert(result.end(), {"--host", host.empty() ? "0.0.0.0" : host});
  if (!line.journal.empty())
    result.insert(result.end(), {"--journal", line.journal});
  add_conf(line, result);
  return result;
}

argument_list node_command(const command_line& line, const node_place& place, const std::string& address,
                           bool all_local) {
  auto& binary = place.local || line.remote_binary.empty() ? line.binary : line.remote_binary;
  argument_list node{binary,   "node",    "--join", address, "--devices", std::to_string(place.devices),
                     "--name", place.name};
  add_conf(line, node, place.local);
  if (!all_local && !line.conf_places_nodes
      && !line.has_key("node.listen-host")) // nodes here must be reachable from other hosts, where this
                                            // host's name may not resolve
    node.insert(node.end(), {"--listen-host", "auto"});
  if (place.local)
    return node;
  return by_ssh(line, place.host, place.name, quoted_words(node));
}

argument_list remote_rank_command(const command_line& line, const rank_place& place,
                                  const std::vector<std::pair<std::string, std::string>>& variables,
                                  const std::string& directory) {
  argument_list words{"env"};
  for (auto& [name, value] : variables)
    words.push_back(fmt::format("{}={}", name, value));
  words.insert(words.end(), line.program.begin(), line.program.end());
  return by_ssh(line, place.host, place_text(place),
                fmt::format("cd {} && exec {}", shell_quote(directory), quoted_words(words)));
}

argument_list info_command(const command_line& line, const std::vector<std::string>& names, const std::string& address,
                           std::chrono::milliseconds limit) {
  auto seconds = std::chrono::ceil<std::chrono::seconds>(limit).count();
  argument_list result{line.binary, "info",
                       "--join",    address,
                       "--nodes",   fmt::format("{}", fmt::join(names, ",")),
                       "--timeout", fmt::format("{}s", seconds),
                       "--json"};
  add_trust(line, result);
  return result;
}

argument_list gone_command(const command_line& line, const node_place& place, const std::string& address,
                           std::chrono::seconds limit) {
  argument_list result{line.binary, "info",     "--join",    address,
                       "--gone",    place.name, "--timeout", fmt::format("{}s", limit.count()),
                       "--json"};
  add_trust(line, result);
  return result;
}

argument_list gateway_command(const command_line& line, const std::string& address, const std::string& ready_file) {
  argument_list result{line.gateway_binary, "--join", address, "--grpc", line.gateway, "--ready-file", ready_file};
  if (!line.http.empty())
    result.insert(result.end(), {"--http", line.http});
  add_conf(line, result);
  return result;
}

argument_list absent_command(const command_line& line, const std::vector<std::string>& ranks,
                             const std::string& address) {
  argument_list result{line.binary, "absent", "--join", address, "--timeout", "3s"};
  add_trust(line, result);
  result.insert(result.end(), ranks.begin(), ranks.end());
  return result;
}

std::string paused_text(const std::string& name) {
  return fmt::format("{} is stopped by a signal, and all others ended {} s ago: killing it", name,
                     paused_limit.count());
}

std::string shell_quote(const std::string& text) {
  std::string quoted = "'";
  for (char c : text)
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  return quoted + "'";
}

} // namespace ringmaster::launch
