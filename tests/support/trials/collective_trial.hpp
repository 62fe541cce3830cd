#pragma once

#include "tests/support/simulated_host.hpp"
#include "tests/support/trials/collective_expectation.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::test {

/// One collective of any kind on a simulated cluster, and its judgement.
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
  uint64_t bytes() const { return expected_.bytes(); }
  uint64_t sequence() const { return sequence_; }

  simulated_host& cluster;
  collective_options options;
  gpu_sim::CommInitResponse comm;

private:
  using group = collective_expectation::group;

  /// `failed`: whether the operation did.
  group deciding_group(bool& failed);
  std::string judge_rank(const group& members, uint32_t place, bool failed);
  uint64_t base(uint64_t device) const;
  uint64_t input_address(uint32_t rank) const { return base(device(rank)) + expected_.input_at(); }
  uint64_t output_address(uint32_t rank) const { return base(device(rank)) + expected_.output_at(); }

  uint64_t offset_ = 0;
  uint64_t sequence_ = 0; ///< The operation's.
  collective_expectation expected_;
};

} // namespace ringmaster::test
