#pragma once

#include "runtime/schedule/collective.hpp"
#include "tests/support/simulated_host.hpp"

#include <functional>
#include <optional>
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
  /// On a communicator of its own.
  collective_trial(simulated_host& cluster, const collective_options& opts);
  /// On one that is there, `offset` bytes from the start of each device's memory: several beside each other.
  collective_trial(simulated_host& cluster, const collective_options& opts, const gpu_sim::CommInitResponse& on,
                   uint64_t offset);

  /// Enqueues the operation; returns the error text, if any.
  std::string launch();
  /// What the rank itself calls of it; none where it has no part.
  std::optional<proto::RankCall::Part> part_of(uint32_t rank) const;
  /// Which operation it has become that ranks have called, by what the journal says.
  void find_sequence(const std::vector<proto::Record>& history);
  /// Whether the survivors hold what the group that ended the operation computes from the original inputs, and
  /// everything else is as it was, by what the journal says of the operation. `gone`: of a device that cannot be asked.
  /// Returns what is wrong.
  std::string judge(const std::function<bool(uint64_t)>& gone = [](uint64_t) { return false; });
  uint64_t device(uint32_t rank) const { return comm.devices(static_cast<int>(rank)).deviceid().value(); }
  /// Of each device's memory.
  uint64_t bytes() const { return (3 * guard + 2 * room_) * 8; }
  uint64_t sequence() const { return sequence_; }

  simulated_host& cluster;
  collective_options options;
  gpu_sim::CommInitResponse comm;

private:
  static constexpr uint64_t guard = 8; ///< Elements.

  /// Who has a rank when the operation ends.
  struct holder {
    uint32_t rank = 0; ///< At the start: whose input counts.
    uint64_t device = 0;
  };
  using group = std::vector<holder>;

  plan_request world_of(const group& members) const;
  /// `failed`: whether the operation did.
  group deciding_group(bool& failed);
  std::string judge_rank(const group& members, uint32_t place, bool failed);
  uint64_t base(uint64_t device) const;
  uint64_t input_address(uint32_t rank) const { return base(device(rank)) + guard * 8; }
  uint64_t output_address(uint32_t rank) const { return base(device(rank)) + (2 * guard + room_) * 8; }
  int64_t result(const group& members, uint32_t place, uint64_t index) const;

  uint64_t offset_ = 0;
  uint64_t sequence_ = 0;                    ///< The operation's.
  plan_request world_;                       ///< Of all ranks.
  uint64_t room_ = 0;                        ///< Elements of the largest buffer.
  std::vector<std::vector<int64_t>> before_; ///< By rank: all of its region.
};

/// "halving reduce_scatter over 5 ranks, root 0, ..."
std::string text_of(const collective_options& x);
proto::Collective collective_of(const collective_options& x);

} // namespace ringmaster::test
