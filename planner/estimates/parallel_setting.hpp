#pragma once

#include "planner/models/language_model.hpp"
#include "planner/systems/number_format.hpp"
#include <ringmaster/strategy/group.hpp>

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

/// How a model is trained, on tensor x context x data x pipeline devices, numbered in that order.
struct parallel_setting {
  mesh shape;
  uint32_t context = 1;      ///< Ranks that share a sequence (ring attention, Liu et al. 2023).
  uint32_t expert = 1;       ///< Ranks that share a layer's experts: of the tensor x context x data ones, neighbours.
  uint32_t global_batch = 1; ///< Samples; a multiple of micro_batch x shape.data.
  uint32_t micro_batch = 1;
  uint32_t chunks = 1; ///< Of interleaved.
  pipeline_schedule schedule = pipeline_schedule::one_f_one_b;
  recomputation again = recomputation::none;
  bool sequence_parallel = false;
  uint32_t zero = 0;         ///< Stage.
  uint32_t shard = 0;        ///< Ranks that share weights fully, gathered ahead (FSDP, Zhao et al. 2023); 0: none do.
  double gradient_bytes = 4; ///< Of the buffer that they are added in, and of what is reduced of them.
  double state_bytes = 12;   ///< Of the optimizer, a parameter: a float32 copy, two moments of 4, 2 or 1 bytes.
  bool offloads_states = false;      ///< They are in the host's memory.
  bool offloads_activations = false; ///< The same of what layers keep, but for two of them.
  bool overlapped = false;           ///< Gradients are reduced, and weights gathered, behind other work.
  bool as_simulated = false; ///< What is reduced and gathered when, and behind what, is a strategy's: no closed form.
  number_format computed_in = number_format::bf16;
  attention_kernel attention = attention_kernel::flash;
  std::optional<counted_scores> counted{}; ///< In MFU; nothing: those that the kernel computes.

  friend bool operator==(const parallel_setting&, const parallel_setting&) = default;

  counted_scores counts() const {
    return counted.value_or(attention == attention_kernel::flash ? counted_scores::causal : counted_scores::full);
  }
  uint32_t devices() const { return shape.size() * context; }
  /// Ranks that have the same weights, but for experts, and other samples or positions.
  uint32_t replicas() const { return shape.data * context; }
  /// Ranks that have the same experts.
  uint32_t expert_replicas() const { return std::max(1u, shape.tensor * replicas() / expert); }
  /// Of the replicas, those that share their weights fully; groups of them have copies (HSDP).
  uint32_t sharers() const { return std::min(shard, replicas()); }
  /// Ranks among which weights, gradients or states are divided, where they are.
  uint32_t weight_sharers() const { return shard > 0 ? sharers() : replicas(); }
  /// Of the ranks that have the same experts, those that share them fully: all, or, where experts go along with the
  /// other weights, the group that shares those.
  uint32_t expert_sharers() const { return expert_goes_along() ? sharers() * shape.tensor : expert_replicas(); }
  bool expert_goes_along() const { return shard > 0 && expert == 1 && sharers() < replicas(); }
  /// Of a rank's layers: DualPipe has its own and those of the stage across.
  uint32_t copies() const { return schedule == pipeline_schedule::dualpipe ? 2 : 1; }
  /// Whether a rank holds both ends of the model: its first chunk and its last one.
  bool turns_around() const { return schedule == pipeline_schedule::zb_v || schedule == pipeline_schedule::dualpipe; }
  /// Of a parameter, what an all_reduce of gradients moves, of a reduce_scatter of gradients and an all_gather of
  /// weights the mean.
  double reduced_bytes() const {
    const bool gathers = zero > 0 || shard > 0;
    return gathers ? (gradient_bytes + bytes_of(computed_in).gathered) / 2 : gradient_bytes;
  }
  uint32_t micro_batches() const { return global_batch / (micro_batch * shape.data); }
  /// Layers of a chunk, on the stages that have the most. Where layers do not divide, embedding and logits count as
  /// one each (Megatron-LM's layouts).
  uint32_t chunk_layers(uint32_t layers) const {
    const auto places = shape.pipeline * chunks_of_stage();
    return layers % places == 0 ? layers / places : (layers + 1 + places) / places;
  }
  /// Of a rank's layers forward, the part that another micro-batch's backward goes beside, so that experts' positions
  /// move behind its work, and the other way round. Megatron-LM does so where stages have several chunks, or where
  /// there is one stage and it is whole: behind the first forwards, 2 (p-1) + (v-1) p and one more of m v; DeepSeek-AI
  /// 2024's DualPipe in m - 1.5 p + 1 of m. Of the first stage's rank, which has the fewest. Megatron-LM refuses it
  /// with full recomputation.
  double paired_part() const {
    const double m = micro_batches(), p = shape.pipeline, v = chunks;
    if (again == recomputation::full && schedule != pipeline_schedule::dualpipe)
      return 0;
    if (shape.pipeline == 1)
      return shard == 0 ? (m - 1) / m : 0;
    if (schedule == pipeline_schedule::dualpipe)
      return std::clamp((m - 1.5 * p + 1) / m, 0.0, 1.0);
    if (schedule != pipeline_schedule::interleaved_1f1b || chunks == 1 || micro_batches() == shape.pipeline)
      return 0;
    return std::clamp((m * v - 2 * (p - 1) - (v - 1) * p - 1) / (m * v), 0.0, 1.0);
  }
  /// Runs of layers on a rank: ZB-V's go there and back.
  uint32_t chunks_of_stage() const {
    return schedule == pipeline_schedule::interleaved_1f1b ? chunks : schedule == pipeline_schedule::zb_v ? 2 : 1;
  }
};

} // namespace ringmaster::training
