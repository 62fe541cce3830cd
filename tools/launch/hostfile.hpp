#pragma once

#include <caf/expected.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::launch {

/// One node to start.
struct node_place {
  std::string host;
  std::string name;     ///< Unique in the cluster; letters, digits, '.', '_' and '-'.
  uint32_t devices = 0; ///< 1..max_devices
  bool local = false;   ///< On the host of the launcher: started directly, not by ssh.

  static constexpr uint32_t max_devices = 1024;
};

/// Most nodes that one launch starts.
constexpr uint32_t max_nodes = 1024;

/// Reads a hostfile: one node a line, `HOST [slots=DEVICES] [name=NAME]`; '#' begins a comment, blank lines are
/// nothing. Without slots a node has `default_devices`; without a name the n-th node is "node-n". Local are localhost,
/// 127.0.0.1, ::1 and `own_host`. An error names `file_name` and the line.
caf::expected<std::vector<node_place>> parse_hostfile(std::string_view text, const std::string& file_name,
                                                      uint32_t default_devices, const std::string& own_host);

/// `count` nodes "node-1".. on this host.
std::vector<node_place> local_places(uint32_t count, uint32_t devices);

} // namespace ringmaster::launch
