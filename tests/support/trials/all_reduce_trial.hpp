#pragma once

#include "tests/support/simulated_host.hpp"

#include <string>
#include <vector>

namespace ringmaster::test {

struct trial_options {
  std::string algorithm = "ring";
  uint32_t ranks = 4;
  uint64_t count = 10;
  proto::DataType datatype = proto::FLOAT64;
  gpu_sim::ReduceOp op = gpu_sim::SUM;
  bool in_place = true;
};

/// One all-reduce on a simulated cluster with random inputs between guard words, and its judgement.
class all_reduce_trial {
public:
  all_reduce_trial(simulated_host& cluster, const trial_options& opts);

  /// Enqueues the operation; returns the error text, if any.
  std::string launch();

  /// Judges the outcome: every device in `devices` (ranks of the start) holds, bit for bit, what a fresh group of the
  /// ranks in `contributors` computes from the original inputs, all inputs that are not outputs and all guard words are
  /// untouched. Returns what is wrong.
  std::string judge(const std::vector<uint32_t>& contributors, const std::vector<uint32_t>& devices);

  /// Whether the device still holds its original input where its input was.
  bool input_intact(uint32_t rank);

  uint64_t device(uint32_t rank) const { return comm.devices(static_cast<int>(rank)).deviceid().value(); }
  uint64_t input_address(uint32_t rank) const { return base(rank) + guard_bytes; }
  uint64_t output_address(uint32_t rank) const;
  std::vector<uint32_t> ranks_but(const std::vector<uint32_t>& lost) const;

  /// What a fresh group of these ranks computes.
  std::vector<std::byte> expected(const std::vector<uint32_t>& contributors) const;

  static constexpr uint64_t guard_bytes = 64;

  simulated_host& cluster;
  trial_options options;
  gpu_sim::CommInitResponse comm;
  std::vector<std::vector<std::byte>> inputs; ///< By rank.
  /// Devices of the epoch that decided, in rank order: where they lie shows in the bits of some algorithms. Empty:
  /// those that the contributors had at first.
  std::vector<uint64_t> deciders;
  uint64_t bytes = 0; ///< Of one input.

private:
  /// As `plan_request` has them, by the cluster's rule.
  std::vector<uint32_t> hosts_of(const std::vector<uint32_t>& contributors) const;
  uint64_t base(uint32_t rank) const { return comm.devices(static_cast<int>(rank)).minmemaddr().value() + 8; }
  uint64_t region_bytes() const { return 3 * guard_bytes + 2 * bytes; }
};

} // namespace ringmaster::test
