#pragma once

#include "runtime/samples/sample_values.hpp"
#include "runtime/schedule/collective.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringmaster {

/// For benchmarks and tests: the inputs of one collective on all ranks, and its expected outputs. The data are
/// `sample_values`: every element of every rank has a different value. Outputs are computed from the kind's definition
/// (`meaning_of`), independently of any algorithm.
class sample_collective {
public:
  /// `op` is ignored if the kind does not reduce. `request`: of any rank; may have counts. `salt`: data of operations
  /// with different salts differ. `members`: by rank, the number of its data, which is its rank before any loss; empty:
  /// its rank.
  sample_collective(proto::CollectiveKind kind, plan_request request, proto::DataType type, gpu_sim::ReduceOp op,
                    uint64_t salt = 0, std::vector<uint32_t> members = {});

  /// The whole input of `rank`.
  std::vector<std::byte> input(uint32_t rank) const;
  /// The number of wrong elements among [first, first + count) of `rank`'s output. Comparing the same elements of all
  /// ranks before the next ones avoids computing the expected values again.
  uint64_t count_wrong(uint32_t rank, uint64_t first, uint64_t count, const std::byte* found);

private:
  /// Consecutive elements of an output that are consecutive in one rank's input.
  struct source_run {
    uint32_t rank = 0;
    uint64_t index = 0;
    uint64_t count = 0;
  };

  /// The parts of `rank`'s output, for kinds that only move data.
  std::vector<source_run> sources_of(uint32_t rank) const;
  void expect(uint32_t rank, uint64_t first, uint64_t count);
  void expect_moved(uint32_t rank, uint64_t first, uint64_t count);

  proto::CollectiveKind kind_;
  plan_request request_;
  uint64_t element_bytes_;
  sample_values values_;
  std::vector<uint32_t> members_; ///< By rank.
  // The latest expected values, for ranks that have the same.
  std::vector<std::byte> expected_;
  uint32_t expected_rank_ = 0;
  uint64_t expected_first_ = 0, expected_count_ = 0;
};

} // namespace ringmaster
