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

/// All ranks of a program, and the handles of those that this process plays: torch.distributed's default process group,
/// MPI_COMM_WORLD. The same program runs as one process or as many:
///
///   auto world = process_group::init(system, opts, 4);
///   for (auto& rank : (*world)->ranks())  // each in a thread of its own
///     ...
///   (*world)->finalize();
///
/// Where nobody has started it as one of several processes, it plays all ranks, on devices of a cluster of its own or
/// of one that it joins (cluster::open). Where a launcher has (caf-run --ranks, mpirun, srun, torchrun), it plays the
/// one that the launcher's environment says, and is a node with one device. Under any but caf-run rank 0's process
/// hosts the coordinator. The end of another process is the loss of its rank.
class process_group {
public:
  /// Waits until all ranks are there, `ranks.join-timeout` at most. `ranks_alone`: how many there are where no launcher
  /// says so. Errors: invalid_argument, for an environment that contradicts itself; timed_out, with the ranks that have
  /// not come, or where rank 0 was looked for; those of the cluster.
  static caf::expected<std::unique_ptr<process_group>> init(caf::actor_system& system, const options& opts,
                                                            uint32_t ranks_alone);

  /// Without `finalize` this process leaves at once, as if it had died, so that the others need not wait for it; but
  /// that of rank 0, where it hosts the coordinator, waits for the others all the same.
  ~process_group();
  process_group(const process_group&) = delete;
  process_group& operator=(const process_group&) = delete;

  /// Of the world, whoever plays them.
  uint32_t size() const noexcept { return size_; }
  /// Those that this process plays, in their order.
  std::vector<rank_communicator>& ranks() noexcept { return ranks_; }
  const std::vector<rank_communicator>& ranks() const noexcept { return ranks_; }
  /// Of all ranks, when the world began; some may be gone by now.
  const std::vector<device_id>& devices() const noexcept { return devices_; }
  /// Whether the process of a rank has not ended, as far as the coordinator says within a second.
  bool has_process_of(uint32_t rank) const;
  /// Whether this process plays the rank.
  bool plays(uint32_t rank) const noexcept;
  /// What the node of this process, which plays one rank, has in place of a device that was lost. None: nothing yet.
  std::optional<device_id> device_in_place_of(device_id lost) const;
  /// How it was started; none: it plays all ranks.
  const std::optional<launched_process>& launched() const noexcept { return launched_; }
  const coordinator_actor& coordinator() const noexcept { return cluster_->coordinator(); }

  /// MPI_Finalize: returns when all ranks have called it or are lost, `ranks.leave-timeout` at most; their handles are
  /// gone then, and the communicator has ended. Errors: timed_out, with those that are still at work.
  caf::error finalize();
  /// Announces to the coordinator that this rank has finished, without waiting for the other ranks.
  void leave();

private:
  process_group(caf::actor_system& system, const options& opts) : system_(system), options_(opts) {}

  /// All ranks in this process.
  caf::error play_all(uint32_t count);
  /// The one of the launcher.
  caf::error play_one();
  caf::error open_cluster();
  caf::error meet_others(device_id device);
  /// For the processes of the other ranks to have left.
  void await_leaving();

  caf::actor_system& system_;
  options options_;
  std::optional<launched_process> launched_;
  std::string name_; ///< By which the processes meet.
  std::unique_ptr<cluster> cluster_;
  std::unique_ptr<own_node> node_; ///< Of a process that plays one rank.
  std::optional<client> owner_;    ///< Of the communicator, where this process plays all ranks.
  uint32_t size_ = 0;
  std::vector<device_id> devices_;
  std::vector<uint64_t> nodes_; ///< By rank, where each is a process.
  std::vector<rank_communicator> ranks_;
};

} // namespace ringmaster
