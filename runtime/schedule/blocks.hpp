#pragma once

#include "runtime/schedule/schedule.hpp"

#include <cstdint>
#include <vector>

namespace ringmaster {

/// How a run of elements is cut into blocks that follow each other, of any sizes, zero included.
class blocks {
public:
  /// `count` elements in `parts` nearly equal blocks; the first count % parts of them are one element larger.
  static blocks even(uint64_t count, uint32_t parts);
  /// `parts` blocks of `count` elements each.
  static blocks uniform(uint64_t count, uint32_t parts);
  static blocks of(const std::vector<uint64_t>& counts);
  /// One block for each rank, as the kind cuts its blocked side; ALL_TO_ALL: `rank`'s input.
  static blocks of(proto::CollectiveKind kind, const plan_request& request, uint32_t rank);
  /// ALL_TO_ALL: `rank`'s output.
  static blocks received(const plan_request& request, uint32_t rank);

  uint32_t size() const noexcept { return static_cast<uint32_t>(starts_.size()) - 1; }
  uint64_t total() const noexcept { return starts_.back(); }
  uint64_t count(uint32_t index) const { return starts_[index + 1] - starts_[index]; }
  uint64_t start(uint32_t index) const { return starts_[index]; }

  block_range at(buffer where, uint32_t index) const { return range(where, index, index + 1); }
  /// Blocks [first, last) as one range.
  block_range range(buffer where, uint32_t first, uint32_t last) const {
    return {where, starts_[first], starts_[last] - starts_[first]};
  }

private:
  explicit blocks(std::vector<uint64_t> starts) : starts_(std::move(starts)) {}

  std::vector<uint64_t> starts_; ///< And the end of the last.
};

} // namespace ringmaster
