#pragma once

#include "tools/options/option_table.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::launch {

/// What `caf-run` was asked to do.
struct command_line {
  static constexpr uint32_t usual_devices = 2;

  uint32_t local_nodes = 0; ///< 1..max_nodes; 0: by the hostfile, or by SLURM's allocation.
  std::string hostfile;
  uint32_t ranks = 0;                        ///< Processes of the program; 0: one, and it is no rank.
  bool tags_output = false;                  ///< Of ranks, each line.
  std::optional<uint32_t> devices_per_node;  ///< 1..node_place::max_devices; none: `devices`.
  uint16_t port = 0;                         ///< The coordinator's; 0: the system picks one.
  std::chrono::milliseconds timeout{30'000}; ///< For all nodes to join.
  std::string conf;                          ///< Handed on to all that is started; empty: none.
  std::vector<std::string> keys;             ///< "--section.key=value", handed on to all that is started.
  std::string journal;                       ///< Handed on to the coordinator; empty: none.
  std::string address;                       ///< Where remote hosts reach this one; empty: its own name.
  std::string binary;                        ///< `ringmaster` here; empty: the one beside caf-run.
  std::string remote_binary;                 ///< `ringmaster` on the remote hosts; empty: the same path as here.
  bool conf_places_nodes = false;            ///< The file of `conf` says where nodes listen.
  std::string ssh = "ssh";
  std::string job; ///< Made for each run; by it ranks and coordinator know each other: RINGMASTER_JOB.
  bool prints_completion = false,
       prints_manual = false;       ///< Instead of all this; the program does so where it is alone.
  std::vector<std::string> program; ///< With its arguments; never empty once checked.

  /// Adds all that caf-run takes. This must not move then.
  void add_to(option_table& table);
  /// Takes configuration keys as `option_table::for_configuration` has them: those that are options here, and the
  /// others, which are handed on. Errors: invalid_argument.
  caf::error take_keys(const std::vector<std::string>& arguments);
  /// Takes from the text of the file of `conf` what else would be decided here: at which addresses the coordinator and
  /// the nodes listen, and the devices of each. Options go first. Errors: invalid_argument.
  caf::error take_conf(std::string_view text);
  /// Devices of a node, if its line of the hostfile does not say it.
  uint32_t devices() const { return devices_per_node.value_or(usual_devices); }
  /// Whether `keys` has this one, as "node.listen-host".
  bool has_key(std::string_view key) const;
  /// Errors: invalid_argument, saying what is missing.
  caf::error check() const;
};

} // namespace ringmaster::launch
