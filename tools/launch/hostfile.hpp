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
  bool local = false;   ///< On the launcher's host: started directly, without ssh.

  static constexpr uint32_t max_devices = 1024;
};

/// The limits of one launch.
constexpr uint32_t max_nodes = 1024, max_ranks = 1024;

/// One process of the program, which is a rank.
struct rank_place {
  uint32_t rank = 0;
  uint32_t local_rank = 0; ///< On its host.
  std::string host;
  bool local = false;
};

/// "rank 3 on hostb", or "rank 3" on this host.
std::string place_text(const rank_place& x);

/// Reads a hostfile in the format of any common launcher. Blank lines, comments (# and //), CRLF and a byte order mark
/// are allowed:
///
///   beta                       a node with `default_devices`
///   beta slots=4 name=far      Open MPI, DeepSpeed, horovodrun; max_slots=N is the most that slots may be
///   beta:4                     MPICH, Intel MPI, horovodrun -H; also several, separated by commas
///   n[01-04,7]:2               SLURM's ranges: a node on each of these hosts
///   me@beta, beta user=me      for ssh
///   fd00::7, [fd00::7]:4       IPv6: slots after the colon need brackets
/// The n-th node's default name is "node-n". `own_host` and addresses of this host are local. Errors: invalid_argument
/// with `file_name` and the line.
caf::expected<std::vector<node_place>> parse_hostfile(std::string_view text, const std::string& file_name,
                                                      uint32_t default_devices, const std::string& own_host);

/// The same from a file, on this host. Errors: also io_error.
caf::expected<std::vector<node_place>> read_hostfile(const std::string& file, uint32_t default_devices);

/// The nodes of a SLURM allocation: SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE, which may be empty. Node n is on host
/// n with a device for each task, or `default_devices`. Errors: invalid_argument with the variable.
caf::expected<std::vector<node_place>> slurm_places(const std::string& hosts, const std::string& tasks_per_node,
                                                    uint32_t default_devices, const std::string& own_host);

/// Ranks 0.. on these hosts, which are filled in order up to their number of devices. Errors: invalid_argument for more
/// ranks than devices.
caf::expected<std::vector<rank_place>> rank_places(uint32_t ranks, const std::vector<node_place>& hosts);
/// All on this host.
std::vector<rank_place> local_ranks(uint32_t ranks);

/// `count` nodes "node-1".. on this host.
std::vector<node_place> local_places(uint32_t count, uint32_t devices);

} // namespace ringmaster::launch
