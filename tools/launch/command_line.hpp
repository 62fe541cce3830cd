#pragma once

#include "runtime/trust/tls_identity.hpp"
#include "tools/options/option_table.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::launch {

/// The command line of caf-run.
struct command_line {
  static constexpr uint32_t usual_devices = 2;

  uint32_t local_nodes = 0; ///< 1..max_nodes; 0: the hostfile or SLURM's allocation lists the nodes.
  std::string hostfile;
  uint32_t ranks = 0;                        ///< Processes of the program; 0: one, which is not a rank.
  bool tags_output = false;                  ///< Each line of a rank starts with its number.
  std::optional<uint32_t> devices_per_node;  ///< 1..node_place::max_devices.
  uint16_t port = 0;                         ///< The coordinator's; 0: the system picks one.
  std::chrono::milliseconds timeout{30'000}; ///< For all nodes to join.
  std::string conf;                          ///< Passed to all processes; empty: none.
  std::vector<std::string> keys;             ///< "--section.key=value", passed to all processes.
  std::string journal;                       ///< Passed to the coordinator; empty: none.
  uint32_t coordinator_restarts = 5;         ///< How often a coordinator that was killed is restarted.
  std::string address;                       ///< Where remote hosts reach this one; empty: its own name.
  std::string binary;                        ///< `ringmaster` here; empty: the one beside caf-run.
  std::string remote_binary;                 ///< `ringmaster` on the remote hosts; empty: the same path as here.
  bool conf_places_nodes = false;            ///< The file of `conf` says where nodes listen.
  std::string ssh = "ssh";
  std::string gateway;           ///< Where ringmaster-gateway serves gRPC, its --grpc; empty: there is none.
  std::string gateway_binary;    ///< `ringmaster-gateway`; set by the command: the one beside caf-run.
  std::string http;              ///< Where it serves HTTP, its --http; empty: nowhere.
  std::string secret_file;       ///< Of the cluster; empty: set by the command, which makes one for this run.
  std::string secret;            ///< Its text, for other hosts; set by the command.
  bool tls = false;              ///< Connections are encrypted, with certificates that are made for this run, or those
  std::string certificates;      ///< ... in this directory of `ringmaster certificates`.
  tls_identity::files own_files; ///< Of this host; set by the command.
  std::map<std::string, std::string> host_certificates; ///< Of other hosts: three lines for `reads_lines`.
  bool keeps_scratch = false;     ///< The secret is in the directory of this run; set by the command.
  bool insecure = false;          ///< No secret is required.
  std::string job;                ///< Identifies the run to its ranks and coordinator: RINGMASTER_JOB.
  bool prints_completion = false; ///< The program handles it where it is the only argument.
  /// With its arguments. `check` refuses an empty one, except with a gateway, which then is the program.
  std::vector<std::string> program;

  /// Adds all options. This object must not move afterwards.
  void add_to(option_table& table);
  /// Applies configuration arguments (`option_table::for_configuration`): keys that are options here are read, all
  /// others are passed on. Errors: invalid_argument.
  caf::error take_keys(const std::vector<std::string>& arguments);
  /// Applies the keys of the file `conf` that caf-run itself needs: the addresses at which coordinator and nodes
  /// listen, and the devices of a node. Options have precedence. Errors: invalid_argument.
  caf::error take_conf(std::string_view text);
  /// Devices of a node without a number in the hostfile.
  uint32_t devices() const { return devices_per_node.value_or(usual_devices); }
  /// `keys`, and those of trust. On other hosts secret and certificate themselves are passed, and no files.
  std::vector<std::string> keys_for(bool on_this_host) const;
  /// What a process on that host reads from its standard input before all else; empty: nothing.
  std::string first_lines(const std::string& host) const;
  /// Whether `keys` has this one, as "node.listen-host".
  bool has_key(std::string_view key) const;
  /// Errors: invalid_argument.
  caf::error check() const;
};

} // namespace ringmaster::launch
