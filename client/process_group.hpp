#pragma once

#include "client/client.hpp"
#include "client/cluster.hpp"
#include "client/own_node.hpp"
#include "client/rank_communicator.hpp"
#include "runtime/launchers/launched_process.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

/// All ranks of a program and the handles of those that this process runs: torch.distributed's default process group,
/// MPI_COMM_WORLD. The same program runs as one process or as many:
///
///   auto world = process_group::init(system, opts, 4);
///   for (auto& rank : (*world)->ranks())  // each in a thread of its own
///     ...
///   (*world)->finalize();
///
/// Without a launcher the process runs all ranks, on devices of its own cluster or of one that it joins
/// (cluster::open). Under a launcher (caf-run --ranks, mpirun, srun, torchrun) it runs the rank that the environment
/// names, and is a node with one device. The process of rank 0 hosts the coordinator, except under caf-run. The end of
/// another process is the loss of its rank.
class process_group {
public:
  /// Waits until all ranks have joined, for `ranks.join-timeout` at most. `ranks_alone`: ranks without a launcher.
  /// Errors: invalid_argument for a contradictory environment; timed_out, with the missing ranks, or the address at
  /// which rank 0 was expected; those of the cluster.
  static caf::expected<std::unique_ptr<process_group>> init(caf::actor_system& system, const options& opts,
                                                            uint32_t ranks_alone);

  /// Without `finalize` this process leaves at once, as if it had died, and the others do not wait for it. The process
  /// of rank 0 waits for the others nevertheless if it hosts the coordinator.
  ~process_group();
  process_group(const process_group&) = delete;
  process_group& operator=(const process_group&) = delete;

  /// Ranks of the world, in all processes.
  uint32_t size() const noexcept { return size_; }
  /// The ranks of this process, in order.
  std::vector<rank_communicator>& ranks() noexcept { return ranks_; }
  const std::vector<rank_communicator>& ranks() const noexcept { return ranks_; }
  /// Devices of all ranks when the world started; some may have been lost since.
  const std::vector<device_id>& devices() const noexcept { return devices_; }
  /// Whether the process of a rank still runs, as the coordinator says; it may answer within a second.
  bool has_process_of(uint32_t rank) const;
  /// Whether this process runs the rank.
  bool plays(uint32_t rank) const noexcept;
  /// The device that replaces a lost one on the node of this process, which runs one rank. None: not yet restarted.
  std::optional<device_id> device_in_place_of(device_id lost) const;
  /// How it was launched; none: it runs all ranks.
  const std::optional<launched_process>& launched() const noexcept { return launched_; }
  const coordinator_actor& coordinator() const noexcept { return cluster_->coordinator(); }

  /// MPI_Finalize: returns when all ranks have called it or are lost, after `ranks.leave-timeout` at most. The handles
  /// are destroyed then and the communicator has ended. Errors: timed_out, with the ranks that still run.
  caf::error finalize();
  /// Announces to the coordinator that this rank has finished, without waiting for the other ranks.
  void leave();

private:
  process_group(caf::actor_system& system, const options& opts) : system_(system), options_(opts) {}

  /// Runs all ranks in this process.
  caf::error play_all(uint32_t count);
  /// Runs the rank that the launcher names.
  caf::error play_one();
  caf::error open_cluster();
  caf::error meet_others(device_id device);
  /// Waits until the processes of the other ranks have left.
  void await_leaving();

  caf::actor_system& system_;
  options options_;
  std::optional<launched_process> launched_;
  std::string name_; ///< The rendezvous name of the processes.
  std::unique_ptr<cluster> cluster_;
  std::unique_ptr<own_node> node_; ///< Of a process that runs one rank.
  std::optional<client> owner_;    ///< Owns the communicator if this process runs all ranks.
  uint32_t size_ = 0;
  std::vector<device_id> devices_;
  std::vector<uint64_t> nodes_; ///< By rank, if each rank is a process.
  std::vector<rank_communicator> ranks_;
};

} // namespace ringmaster
