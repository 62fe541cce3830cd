#pragma once

#include "actors/communicators/communicator_options.hpp"
#include "runtime/epochs/rank_history.hpp"
#include "runtime/operations/fusing.hpp"
#include "runtime/operations/operation.hpp"
#include "runtime/selection/known_picks.hpp"

#include <string>
#include <vector>

namespace ringmaster {

/// Makes operations of requests, and plans of operations: checks addresses, picks the algorithm, and decides whether
/// the data is moved in shared memory. Pure.
class operation_planner {
public:
  explicit operation_planner(const communicator_options& options) : options_(options) {}

  /// An epoch is open over ranks that lie on these hosts.
  void set_hosts(std::vector<uint32_t> hosts);

  /// The operation of a request over the ranks of `in_epoch`, or of now where it is 0. `shares_memory`: this process
  /// may write the memories of all ranks of now. Errors: the request is invalid, or cannot go on without ranks that
  /// were lost since.
  caf::expected<operation> operation_for(const proto::CollectiveRequest& request, const rank_history& members,
                                         epoch_number in_epoch, bool shares_memory);
  /// Starts an attempt of the operation in `epoch`. Returns the plan that streams are sent.
  proto::OperationPlan start(operation& op, epoch_number epoch, uint32_t ranks, bool shares_memory,
                             uint64_t unix_ns) const;
  /// How much may be fused over these ranks.
  fusing_limits may_fuse(const std::vector<rank_device>& ranks) const;

private:
  /// Whether contributions are kept separate until one rank has all of them: because the order of additions is fixed,
  /// or because partial sums of the datatype could overflow.
  bool adds_in_rank_order(const proto::Collective& what) const;
  /// The requested one. For "auto" the shared-memory algorithm if all memories are in reach, else the one with the
  /// lowest estimate.
  caf::expected<std::string> algorithm_for(const proto::Collective& what, size_t ranks, bool shares_memory);
  /// As requested; else, between processes, what `chunk_for` says of their network.
  caf::expected<uint64_t> chunk_of(const proto::Collective& what, size_t ranks, bool shares_memory);
  plan_request network_request(const proto::Collective& what, size_t ranks) const;

  const communicator_options& options_;
  std::vector<uint32_t> hosts_;
  known_picks picks_; ///< Earlier answers for these hosts.
};

} // namespace ringmaster
