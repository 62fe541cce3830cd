#pragma once

#include "runtime/algorithms/registry.hpp"
#include "runtime/selection/selection.hpp"

#include <vector>

namespace ringmaster {

/// The costs of operations within one process, whose cores do the work of all ranks.
struct process_constants {
  uint32_t cores = 1;
  double operation_s = 0;
  double rank_s = 0;           ///< For each rank.
  double step_s = 0;           ///< From one round to the next.
  double message_s = 0;        ///< Core time for each end of a block.
  double bandwidth = 1;        ///< Bytes per second that a core copies in its caches.
  double reduction_rate = 1;   ///< Bytes per second that a core reduces in its caches.
  double memory_bandwidth = 1; ///< Bytes per second that all cores together read and write beyond their caches.
  uint64_t cache_bytes = 0;    ///< The size of all cores' caches.
  struct {
    double operation_s = 0;
    double rank_s = 0;
    double bandwidth = 1; ///< Inputs and outputs of all ranks, bytes per second.
  } joint{};              ///< Shared-memory operations, which run once for all ranks.
  struct {
    double collective_s = 0;
    double receive_s = 0; ///< The mean of a step; at some of them the rank sleeps.
  } training{};           ///< For ranks of a training, in addition to the shared-memory operation.

  /// The time of an operation of this kind.
  double training_s(proto::CollectiveKind kind) const {
    return kind == proto::SEND_RECV ? training.receive_s : training.collective_s;
  }
};

/// The work of an operation in one process, counted round by round. A round lasts as long as its busiest rank works,
/// and at least as long as its whole work divided by the cores.
struct process_work {
  bool joint = false; ///< A shared-memory operation: `bytes` counts inputs and outputs of all ranks, the rest is 0.
  double ranks = 0;
  double steps = 0;
  double messages = 0; ///< Ends of blocks, sent or received.
  double copied_bytes = 0;
  double reduced_bytes = 0;
  double traffic_bytes
    = 0; ///< Read and written beyond the caches: the part of all buffers that does not fit into them.
  double bytes = 0;

  /// The factors of the constants: operation, rank, step, end of a block, byte copied, byte reduced, byte beyond the
  /// caches. For a shared-memory operation: operation, rank, byte.
  std::vector<double> features() const;
};

/// Uses only the machine's cores and caches. Errors: those of `plan`.
caf::expected<process_work> work_in_process(const algorithm& which, const plan_request& request, uint64_t element_bytes,
                                            const process_constants& machine);

time_estimate estimate(const process_work& work, const process_constants& constants);

/// The algorithms of the kind by their estimated time in one process, in the form of `candidates`. It plans every rank
/// of each algorithm, which takes milliseconds, and seconds for a thousand ranks.
caf::expected<std::vector<candidate>> candidates_in_process(proto::CollectiveKind kind, const plan_request& request,
                                                            uint64_t element_bytes, const process_constants& constants);

} // namespace ringmaster
