#pragma once

#include "planner/estimates/training_setting.hpp"
#include "planner/plans/training_framework.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::training {

/// ZeRO stages by their number, then those that gather weights layer by layer, which have no stages of a pipeline.
inline constexpr std::array<std::string_view, 6> shardings{"zero0", "zero1", "zero2", "zero3", "fsdp", "hsdp"};

/// The allowed values of a degree.
struct number_range {
  uint32_t least = 1;
  uint32_t most = UINT32_MAX;
  bool contains(uint32_t x) const { return x >= least && x <= most; }
};

/// Which plans are candidates.
struct plan_filter {
  number_range tp, cp, ep, dp, pp, chunks;
  std::vector<uint32_t> micro_batches;       ///< Empty: every one that divides.
  std::vector<std::string> only, excluded;   ///< Schedules and shardings: 1f1b, ..., zero0 to zero3, fsdp, hsdp.
  std::vector<recomputation> recomputations; ///< Empty: all.
  number_format computed_in = number_format::bf16;
  attention_kernel attention = attention_kernel::flash;
  std::optional<counted_scores> counted{}; ///< In MFU.
  double gradient_bytes = 4, state_bytes = 12;
  bool offloads_states = false, offloads_activations = false;
  training_framework framework = training_framework::any; ///< Only plans that it can run.

  /// Whether the filter accepts this schedule with this sharding. `excluded` refuses each. `only` accepts: the named
  /// schedules, or all if none is named; with each of them the named ZeRO stages, or all if none is named. FSDP and
  /// HSDP have no schedule: they are accepted if they are named, or if nothing is. On one stage there is no schedule,
  /// so none is excluded, and `only` treats it as 1F1B.
  bool takes(pipeline_schedule schedule, std::string_view sharding, bool on_one_stage) const;
};

} // namespace ringmaster::training
