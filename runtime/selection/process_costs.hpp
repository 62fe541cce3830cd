#pragma once

#include "runtime/algorithms/registry.hpp"
#include "runtime/selection/selection.hpp"

#include <vector>

namespace ringmaster {

/// What operations take whose ranks all lie in one process, where the cores do the work of all ranks.
struct process_constants {
  uint32_t cores = 1;
  double operation_s = 0;
  double rank_s = 0;           ///< Of each rank.
  double step_s = 0;           ///< From a round to the next.
  double message_s = 0;        ///< Of a core, for each end of a block.
  double bandwidth = 1;        ///< Bytes a second that a core copies in its caches.
  double reduction_rate = 1;   ///< Bytes a second that a core reduces in its caches.
  double memory_bandwidth = 1; ///< Bytes a second, read and written, that all cores together get past their caches.
  uint64_t cache_bytes = 0;    ///< What all cores have in caches.
  struct {
    double operation_s = 0;
    double rank_s = 0;
    double bandwidth = 1; ///< Inputs and outputs of all ranks, in bytes a second.
  } joint{};              ///< Joint operations: those that are run for all ranks at once.
  struct {
    double collective_s = 0;
    double receive_s = 0; ///< The mean of a step: its rank has slept at some.
  } training{};           ///< What a training's ranks ask for and wait for: beside the joint operation that it is.

  /// What those of this kind take.
  double training_s(proto::CollectiveKind kind) const {
    return kind == proto::SEND_RECV ? training.receive_s : training.collective_s;
  }
};

/// What an operation in one process consists of. Work that is walked step by step is counted round by round: a round
/// lasts as long as its busiest rank works, and at least as long as all its work, shared by the cores. So it is at most
/// the whole work on one core, and at least a cores-th of it.
struct process_work {
  bool joint = false; ///< Then `bytes` are the inputs and outputs of all ranks, and the rest is 0.
  double ranks = 0;
  double steps = 0;
  double messages = 0; ///< Ends of blocks: sent, or received.
  double copied_bytes = 0;
  double reduced_bytes = 0;
  double traffic_bytes = 0; ///< Read and written past the caches: the more, the less of all buffers fits into them.
  double bytes = 0;

  /// What the constants are multiplied with: of an operation, a rank, and then a step, an end of a block, a byte
  /// copied, reduced, and fetched or stored past the caches; or, of a joint operation, a byte.
  std::vector<double> features() const;
};

/// Of the machine only the cores and the caches matter. Errors: as of `plan`.
caf::expected<process_work> work_in_process(const algorithm& which, const plan_request& request, uint64_t element_bytes,
                                            const process_constants& machine);

time_estimate estimate(const process_work& work, const process_constants& constants);

/// The algorithms of the kind by what they are estimated to take in one process, as `candidates` has it. It plans every
/// rank of each: a matter of milliseconds, of seconds for a thousand ranks.
caf::expected<std::vector<candidate>> candidates_in_process(proto::CollectiveKind kind, const plan_request& request,
                                                            uint64_t element_bytes, const process_constants& constants);

} // namespace ringmaster
