#pragma once

#include "runtime/samples/sample_values.hpp"
#include "runtime/schedule/collective.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringmaster {

/// For benchmarks and tests: the inputs of one collective over all ranks, and the outputs that it must have. The data
/// are `sample_values`: every element of every rank has a value of its own. Outputs are computed from what the kind
/// means, as `meaning_of` has it, apart from any algorithm.
class sample_collective {
public:
  /// `op` is ignored where the kind does not reduce. `request`: of any rank; may have counts. `salt`: what is left of
  /// an operation with another one is wrong. `members`: by rank, the number of its data, which after a loss is the rank
  /// that it had at first; empty: its rank.
  sample_collective(proto::CollectiveKind kind, plan_request request, proto::DataType type, gpu_sim::ReduceOp op,
                    uint64_t salt = 0, std::vector<uint32_t> members = {});

  /// All of `rank`'s input.
  std::vector<std::byte> input(uint32_t rank) const;
  /// The number of elements that differ from what elements [first, first + count) of `rank`'s output must be. Comparing
  /// the same elements of all ranks before the next ones computes what all of them must have once.
  uint64_t count_wrong(uint32_t rank, uint64_t first, uint64_t count, const std::byte* found);

private:
  /// Elements of an output that follow each other in one rank's input, too.
  struct source_run {
    uint32_t rank = 0;
    uint64_t index = 0;
    uint64_t count = 0;
  };

  /// The output of `rank` from its start to its end, where the kind only moves data.
  std::vector<source_run> sources_of(uint32_t rank) const;
  void expect(uint32_t rank, uint64_t first, uint64_t count);
  void expect_moved(uint32_t rank, uint64_t first, uint64_t count);

  proto::CollectiveKind kind_;
  plan_request request_;
  uint64_t element_bytes_;
  sample_values values_;
  std::vector<uint32_t> members_; ///< By rank.
  // What was compared last, for the ranks that must have the same.
  std::vector<std::byte> expected_;
  uint32_t expected_rank_ = 0;
  uint64_t expected_first_ = 0, expected_count_ = 0;
};

} // namespace ringmaster
