#pragma once

#include "planner/models/language_model.hpp"
#include "planner/systems/number_format.hpp"
#include <ringmaster/strategy/group.hpp>
#include <ringmaster/strategy/parallel_setting.hpp>

#include <algorithm>
#include <optional>
#include <string_view>

namespace ringmaster::training {

enum class pipeline_schedule : uint8_t {
  all_forwards_first,
  one_f_one_b,
  interleaved_1f1b,
  zb_h1,
  zb_h2,
  zb_v,
  dualpipe
};

inline constexpr size_t pipeline_schedules = 7;

/// The strategy's name: gpipe, 1f1b, ...
std::string_view name_of(pipeline_schedule x);

/// The schedule of a strategy; that of 1F1B where it has none of its own.
pipeline_schedule schedule_of(std::string_view strategy);

/// Whether a backward runs its forward again: not at all; the attention's core only (Korthikanti et al. 2022), or,
/// where its scores are never in memory, norms and what is between products; or all of it.
enum class recomputation : uint8_t { none, selective, full };

std::string_view name_of(recomputation x);

/// How scores are made: in memory, each a pass over them; or in tiles that never leave the chip, of the causal half
/// (FlashAttention, Dao et al. 2022).
enum class attention_kernel : uint8_t { flash, unfused };

std::string_view name_of(attention_kernel x);

/// What MFU counts of attention's scores: those that a causal mask leaves, or all (Narayanan et al. 2021).
enum class counted_scores : uint8_t { causal, full };

std::string_view name_of(counted_scores x);

/// Which of a model's layers.
struct layer_kind {
  bool experts = false;
  bool windowed = false; ///< Attention with a window, or linear: language_model::is_windowed.
};

/// How a transformer is trained. All degrees are given, and pp is the number of stages. Devices are numbered along tp
/// first, then cp, dp and pp.
struct training_setting : parallel_setting {
  uint32_t global_batch = 1; ///< Samples; a multiple of micro_batch x dp.
  uint32_t micro_batch = 1;
  pipeline_schedule schedule = pipeline_schedule::one_f_one_b;
  recomputation again = recomputation::none;
  double gradient_bytes = 4;         ///< Of the buffer that they are added in, and of what is reduced of them.
  double state_bytes = 12;           ///< Of the optimizer, a parameter: a float32 copy, two moments of 4, 2 or 1 bytes.
  bool offloads_states = false;      ///< They are in the host's memory.
  bool offloads_activations = false; ///< The same of what layers keep, except for two of them.
  bool overlapped = false;           ///< Gradients are reduced, and weights gathered, during other work.
  bool as_simulated = false;         ///< When something is reduced or gathered follows a strategy: no closed form.
  number_format computed_in = number_format::bf16;
  attention_kernel attention = attention_kernel::flash;
  std::optional<counted_scores> counted{}; ///< In MFU; nothing: those that the kernel computes.

  training_setting() : parallel_setting{.tp = 1, .cp = 1, .dp = 1, .ep = 1, .pp = 1, .chunks = 1} {}
  friend bool operator==(const training_setting&, const training_setting&) = default;

  void set_degrees(uint32_t tensor, uint32_t data, uint32_t pipeline) {
    tp = tensor;
    dp = data;
    pp = pipeline;
  }
  void set_degrees(const mesh& x) {
    set_degrees(x.tensor, x.data, x.pipeline);
    cp = x.context;
  }
  /// What a simulated strategy is given: exchanges of context- and expert-parallel ranks are priced within forward and
  /// backward, so it has no such ranks. `shape`: its ranks.
  parallel_setting simulated() const;
  mesh shape() const { return {tp, dp, pp}; }
  uint32_t devices() const { return tp * cp * dp * pp; }

  counted_scores counts() const {
    return counted.value_or(attention == attention_kernel::flash ? counted_scores::causal : counted_scores::full);
  }
  /// Ranks with the same weights, except experts, and other samples or positions.
  uint32_t replicas() const { return dp * cp; }
  /// Ranks with the same experts.
  uint32_t expert_replicas() const { return std::max(1u, tp * replicas() / ep); }
  /// Of the replicas, those that share their weights fully; groups of them have copies (HSDP).
  uint32_t sharers() const { return std::min(shard_ranks, replicas()); }
  /// Ranks among which weights, gradients or states are divided, if they are.
  uint32_t weight_sharers() const { return shard_ranks > 0 ? sharers() : replicas(); }
  /// Of the ranks with the same experts, those that share them fully: all, or the group that shares the other weights
  /// if experts are sharded along with these.
  uint32_t expert_sharers() const { return expert_goes_along() ? sharers() * tp : expert_replicas(); }
  bool expert_goes_along() const { return shard_ranks > 0 && ep == 1 && sharers() < replicas(); }
  /// Of a rank's layers: DualPipe has its own and those of the opposite stage.
  uint32_t copies() const { return schedule == pipeline_schedule::dualpipe ? 2 : 1; }
  /// Whether a rank holds both ends of the model: its first chunk and its last one.
  bool turns_around() const { return schedule == pipeline_schedule::zb_v || schedule == pipeline_schedule::dualpipe; }
  uint32_t micro_batches() const { return global_batch / (micro_batch * dp); }
  /// Runs of layers on a rank: ZB-V's go there and back.
  uint32_t chunks_of_stage() const {
    return schedule == pipeline_schedule::interleaved_1f1b ? chunks : schedule == pipeline_schedule::zb_v ? 2 : 1;
  }
  /// Of a parameter, the bytes that an all_reduce of gradients moves, or the mean of a reduce_scatter of gradients and
  /// an all_gather of weights.
  double reduced_bytes() const;
  /// Layers of a chunk, on the stages that have the most. Where layers do not divide, embedding and logits count as
  /// one each (Megatron-LM's layouts).
  uint32_t chunk_layers(uint32_t layers) const;
  /// The part of a rank's forward layers that run beside another micro-batch's backward, so that experts' positions
  /// move during its work, and vice versa. Of the first stage's rank, which has the least.
  double paired_part() const;
};

} // namespace ringmaster::training
