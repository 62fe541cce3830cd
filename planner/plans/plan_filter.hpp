#pragma once

#include "planner/estimates/parallel_setting.hpp"
#include "planner/plans/training_framework.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::training {

/// ZeRO stages by their number, then those that gather weights layer by layer, which have no stages of a pipeline.
inline constexpr std::array<std::string_view, 6> shardings{"zero0", "zero1", "zero2", "zero3", "fsdp", "hsdp"};

/// What may be tried of a number.
struct number_range {
  uint32_t least = 1;
  uint32_t most = UINT32_MAX;
  bool contains(uint32_t x) const { return x >= least && x <= most; }
};

/// Which plans are candidates.
struct plan_filter {
  number_range tensor, context, expert, data, pipeline, chunks;
  std::vector<uint32_t> micro_batches;       ///< Empty: every one that divides.
  std::vector<std::string> only, excluded;   ///< Schedules and shardings: 1f1b, ..., zero0 to zero3, fsdp, hsdp.
  std::vector<recomputation> recomputations; ///< Empty: all.
  number_format computed_in = number_format::bf16;
  attention_kernel attention = attention_kernel::flash;
  std::optional<counted_scores> counted{}; ///< In MFU.
  double gradient_bytes = 4, state_bytes = 12;
  bool offloads_states = false, offloads_activations = false;
  training_framework framework = training_framework::any; ///< Only what it can run.

  /// Whether `only` names a plan of these two, and `excluded` does not. FSDP and HSDP that are named are meant as they
  /// are, beside the schedules that are named, and where schedules are named only then; a ZeRO stage is meant with each
  /// of these. What is not named at all is free. Where all layers are on one stage no schedule is excluded, for there
  /// is none; `only` means it as 1F1B.
  bool takes(pipeline_schedule schedule, std::string_view sharding, bool on_one_stage) const;
};

} // namespace ringmaster::training
