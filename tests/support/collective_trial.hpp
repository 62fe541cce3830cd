#pragma once

#include "runtime/schedule/collective.hpp"
#include "tests/support/simulated_cluster.hpp"

#include <string>
#include <vector>

namespace ringmaster::test {

struct collective_options {
  proto::CollectiveKind kind = proto::ALL_REDUCE;
  std::string algorithm = "direct";
  uint32_t ranks = 4;
  uint64_t count = 13;
  uint32_t root = 0;
  uint32_t peer = 0;
  std::vector<uint64_t> counts = {};
  uint64_t chunk = 0;
  bool in_place = false;
  uint32_t devices_a_host = 0; ///< As `simulation_options` has it.
};

/// One collective of any kind on a simulated cluster, on whole numbers between guard words, and its judgement by what
/// the kind means, apart from any algorithm.
class collective_trial {
public:
  collective_trial(simulated_cluster& cluster, const collective_options& opts);

  /// Enqueues the operation; returns the error text, if any.
  std::string launch();
  /// Whether the survivors hold what the group that ended the operation computes from the original inputs, and
  /// everything else is as it was. `status`: of the communicator when it has ended; `killed`: ranks that cannot be
  /// asked. Returns what is wrong.
  std::string judge(const gpu_sim::GetCommStatusResponse& status, const std::vector<uint32_t>& killed = {});
  uint64_t device(uint32_t rank) const { return comm.devices(static_cast<int>(rank)).deviceid().value(); }

  simulated_cluster& cluster;
  collective_options options;
  gpu_sim::CommInitResponse comm;

private:
  static constexpr uint64_t guard = 8; ///< Elements.

  plan_request world_of(const std::vector<uint32_t>& group) const;
  std::vector<uint32_t> deciding_group();
  std::string judge_rank(const std::vector<uint32_t>& group, uint32_t place, bool failed);
  uint64_t base(uint32_t rank) const { return comm.devices(static_cast<int>(rank)).minmemaddr().value(); }
  int64_t result(const std::vector<uint32_t>& group, uint32_t place, uint64_t index) const;

  plan_request world_;                       ///< Of all ranks.
  uint64_t room_ = 0;                        ///< Elements of the largest buffer.
  std::vector<std::vector<int64_t>> before_; ///< By rank: all of its region.
};

/// "halving reduce_scatter over 5 ranks, root 0, ..."
std::string text_of(const collective_options& x);
proto::Collective collective_of(const collective_options& x);

} // namespace ringmaster::test
