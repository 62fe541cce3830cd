#pragma once

#include "runtime/proof/symbol_buffer.hpp"
#include "runtime/schedule/schedule_walk.hpp"

#include <caf/error.hpp>

#include <string>
#include <vector>

namespace ringmaster {

/// In which order a schedule may add.
enum class addition_order : uint8_t {
  any,  ///< Any order: each contribution exactly once.
  ranks ///< x0 op x1 op x2 ..., from left to right, over all ranks: by a fold of their inputs, and by nothing else.
};

/// Does to symbols what the steps say. See `prove` for what it finds wrong.
class symbol_walk : public walk_observer {
public:
  /// What is given must outlive the walk.
  symbol_walk(proto::CollectiveKind kind, const plan_request& request, const std::vector<schedule>& ranks,
              const std::vector<buffer_counts>& counts, addition_order order = addition_order::any);

  symbol_walk(const symbol_walk&) = delete;

  caf::error moved(step_ref from, step_ref to) override;

  /// Of the step that `moved` was last called with: the runs that it took, and those that it wrote.
  const std::vector<symbol_run>& taken() const { return incoming_; }
  const std::vector<symbol_run>& written() const { return *result_; }

  rank_sets& sets() { return sets_; }
  rank_sets::id everybody() const { return everybody_; }

  /// After a walk without a fault. Error: an output does not hold what it must.
  caf::error check_outcome();

private:
  struct rank_symbols {
    symbol_buffer input, output, scratch;
  };

  const step& at(step_ref x) const { return ranks_[x.rank].steps[x.index]; }
  symbol_buffer& at(uint32_t rank, const block_range& range);
  /// "the finished reduction of ranks 0 to 3 from element 2 on": of the element at `position`.
  std::string describe(const symbol_run& x, uint64_t position) const;
  /// Leaves in `*result_` what the step `to` writes. Errors lack the step's place.
  caf::error compute(step_ref from, step_ref to);
  caf::error read(uint32_t rank, const block_range& range, std::vector<symbol_run>& result);
  /// Reduces `incoming_`, of `count` elements, with `own_`.
  caf::error combine(uint64_t count);
  caf::error fold(uint32_t rank, const step& what);
  /// Error: what was read last, lane `lane` of a fold, is not that rank's input.
  caf::error check_lane(uint32_t lane) const;
  caf::error finish(std::vector<symbol_run>& runs);

  proto::CollectiveKind kind_;
  const plan_request& request_;
  const std::vector<schedule>& ranks_;
  addition_order order_;
  rank_sets sets_;
  rank_sets::id everybody_;
  std::vector<rank_symbols> memory_;
  std::vector<symbol_run> incoming_, own_, combined_;
  std::vector<symbol_run>* result_ = &incoming_;
};

} // namespace ringmaster
