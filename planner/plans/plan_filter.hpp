#pragma once

#include "planner/estimates/training_setting.hpp"
#include "planner/models/language_model.hpp"
#include "planner/systems/gpu_system.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::training {

/// A program that runs plans. any: also searches plans that no program can run.
enum class training_framework : uint8_t { any, megatron, torchtitan };

/// megatron, ...
std::string_view name_of(training_framework x);

/// Whether the framework can run such a plan. Megatron: Megatron-LM with Megatron Core and Megatron FSDP; torchtitan:
/// its trainer and options. docs/cost_models.md has the list.
bool can_run(training_framework x, const training_setting& how);

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

/// A question: how to train this model on this many devices.
struct plan_question {
  language_model trained;
  gpu_system system;
  uint32_t devices = 1;
  uint32_t global_batch = 1;
  plan_filter filter{};
};

} // namespace ringmaster::training
